"""The databases to which frames are written, either in a folder or on a server. Each has its own time unit."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import sqlalchemy as sa
from driver.targets import target_of

import saros
from saros_shell.transfer import importer


@dataclass
class Place:
    """A database, and a folder for files."""

    target: str
    connection: saros.Connection
    files: Path

    @cached_property
    def engine(self) -> sa.Engine:
        """An SQLAlchemy engine for the database."""
        embedded = f"saros+embedded:///{self.target}"
        url = self.target if "://" in self.target else embedded
        return sa.create_engine(f"{url}?timestamps=epoch", poolclass=sa.pool.StaticPool)

    def dispose(self) -> None:
        """Close SQLAlchemy's connections, if there are any."""
        if "engine" in self.__dict__:
            self.engine.dispose()

    def import_files(self, *arguments: str) -> None:
        """Run `saros import`. Raises AssertionError unless it reads every row."""
        state = str(self.files / "state")
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = importer.main(["-d", self.target, "--state", state, "--quiet", *arguments])
        if code:
            raise AssertionError(f"saros import {' '.join(arguments)}: {said.getvalue()}")


class Places:
    """Databases by name and time unit, each opened when it is first needed."""

    def __init__(self, way: str, folder: Path, stack: ExitStack) -> None:
        self._way = way
        self._folder = folder
        self._stack = stack
        self._open: dict[str, Place] = {}

    def of(self, name: str, unit: str) -> Place:
        """Return a database. "second" is always embedded: a server would not load TsFiles from the tests' folders."""
        key = f"{name}-{unit}"
        if key not in self._open:
            folder, files = self._folder / key, self._folder / f"{key}-files"
            files.mkdir()
            saros.connect(str(folder), options={"time_unit": unit, "durability": "os"}).close()
            target = self._stack.enter_context(target_of("embedded" if name == "second" else self._way, folder))
            connection = self._stack.enter_context(saros.connect(target, timestamps="epoch"))
            self._open[key] = Place(target, connection, files)
            self._stack.callback(self._open[key].dispose)
        return self._open[key]


@contextmanager
def open_places(way: str, folder: Path) -> Iterator[Places]:
    """Yield databases in a folder, embedded or served, which are closed at the end."""
    with ExitStack() as stack:
        yield Places(way, folder, stack)
