"""Extensions of a database by another room: checks before writes, and layers over views.

    write, delete, drop, change of the schema, LOAD  ->  every WriteGuard  ->  carried out
    view  <-  the last ViewLayer  <-  ...  <-  the first ViewLayer  <-  the database's own view

A database without guards and layers has empty lists, and does nothing for them. Both are set before the database is
used. Guards and layers are thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Protocol

from saros_storage.scan.reading import ReadView
from saros_storage.schema import SchemaChange


class WriteGuard(Protocol):
    """Refuses writes. The checks raise StorageError or UserMistake, whose message says why."""

    @property
    def change_lock(self) -> AbstractContextManager[object]:
        """Held while a change of the schema is checked and carried out; re-entrant."""
        ...

    def check_rows(self, devices: Iterable[str]) -> None:
        """Check rows of these devices."""
        ...

    def check_changes(self, changes: Iterable[SchemaChange]) -> None:
        """Check series that are to be created or altered."""
        ...

    def check_deletion(self, patterns: Sequence[str]) -> None:
        """Check a deletion or drop of everything that the patterns match."""
        ...

    def check_file(self, path: str) -> None:
        """Check a TsFile that is to be loaded."""
        ...


class ViewLayer(Protocol):
    """Shows more, or other, data than the database has itself. `below` opens the view that it lies over."""

    def view(self, below: Callable[[], ReadView]) -> ReadView:
        """Open the layer's view; closing it closes the one below."""
        ...

    def hold(self, below: Callable[[], ReadView]) -> ReadView:
        """Open a view for many statements, all as of the present moment."""
        ...

    def problems(self) -> tuple[str, ...]:
        """Problems with the layer's data, for operators."""
        ...


@contextmanager
def change_locks(guards: Sequence[WriteGuard]) -> Iterator[None]:
    """Hold the locks of all guards."""
    with ExitStack() as held:
        for guard in guards:
            held.enter_context(guard.change_lock)
        yield


def layered_view(layers: Sequence[ViewLayer], own: Callable[[], ReadView]) -> ReadView:
    """Open the view of all layers over the database's own."""
    opened = own
    for layer in layers:
        opened = partial(layer.view, opened)
    return opened()


def layered_hold(layers: Sequence[ViewLayer], own: Callable[[], ReadView]) -> ReadView:
    """The same for many statements."""
    opened = own
    for layer in layers:
        opened = partial(layer.hold, opened)
    return opened()


def layer_problems(layers: Sequence[ViewLayer]) -> tuple[str, ...]:
    """The problems of all layers."""
    return tuple(problem for layer in layers for problem in layer.problems())
