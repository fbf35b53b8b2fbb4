"""Extension points of a database for other top-level packages: checks before writes, and layers on top of views.

    write, delete, drop, schema change, LOAD  ->  every WriteGuard  ->  executed
    view  <-  the last ViewLayer  <-  ...  <-  the first ViewLayer  <-  the database's own view

A database without guards and layers has two empty lists, which cost nothing. The lists are set before the database is
used. Guards and layers must be thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Protocol

from saros_storage.scan.reading import ReadView
from saros_storage.schema import SchemaChange


class WriteGuard(Protocol):
    """A guard that can refuse writes. Its checks raise StorageError or UserMistake with the reason."""

    @property
    def change_lock(self) -> AbstractContextManager[object]:
        """The lock to hold while a schema change is checked and applied; it is reentrant."""
        ...

    def check_rows(self, devices: Iterable[str]) -> None:
        """Check a write of rows of these devices."""
        ...

    def check_changes(self, changes: Iterable[SchemaChange]) -> None:
        """Check schema changes."""
        ...

    def check_deletion(self, patterns: Sequence[str]) -> None:
        """Check a deletion or drop of everything that the patterns match."""
        ...

    def check_file(self, path: str) -> None:
        """Check a LOAD of a TsFile."""
        ...


class ViewLayer(Protocol):
    """A layer whose views add data to a database's own data or replace it. `below` opens the view under the layer."""

    def view(self, below: Callable[[], ReadView]) -> ReadView:
        """Open the layer's view; when it is closed, it also closes the view below."""
        ...

    def hold(self, below: Callable[[], ReadView]) -> ReadView:
        """Open a view for many statements, which all read the same snapshot."""
        ...

    def problems(self) -> tuple[str, ...]:
        """Return the problems with the layer's data, for operators."""
        ...


@contextmanager
def change_locks(guards: Sequence[WriteGuard]) -> Iterator[None]:
    """Hold the locks of all guards."""
    with ExitStack() as held:
        for guard in guards:
            held.enter_context(guard.change_lock)
        yield


def layered_view(layers: Sequence[ViewLayer], own: Callable[[], ReadView]) -> ReadView:
    """Open a view with all layers on top of the database's own view."""
    opened = own
    for layer in layers:
        opened = partial(layer.view, opened)
    return opened()


def layered_hold(layers: Sequence[ViewLayer], own: Callable[[], ReadView]) -> ReadView:
    """Open a view like `layered_view`, for many statements."""
    opened = own
    for layer in layers:
        opened = partial(layer.hold, opened)
    return opened()


def layer_problems(layers: Sequence[ViewLayer]) -> tuple[str, ...]:
    """Return the problems of all layers."""
    return tuple(problem for layer in layers for problem in layer.problems())
