"""`saros backup` and `saros restore`.

    saros backup --data FOLDER --to DIR [--incremental]      a folder that no process has open
    saros backup --url saros://... --to DIR                  a running server, or a node of a cluster
    saros backup list DIR      saros backup verify DIR
    saros restore --from DIR --data NEWFOLDER [--at INDEX|TIME]

Ctrl-C ends a backup; the next backup reuses the files that were already copied. Exit codes: 0 success, 1 failure or a
problem found by verify, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import saros
from saros.base.target import parse_target
from saros.transport.captures import RemoteCaptures
from saros_cluster.node.cluster_file import CLUSTER_FILE
from saros_server.config.arguments import CommandParser
from saros_server.config.configuration import ConfigurationError
from saros_server.config.data_folder import reason
from saros_server.sources.plurals import counted
from saros_shell.commands.read_only_folders import hold, is_unwritable, readable_copy
from saros_shell.output.login import password_of
from saros_shell.output.progress import Progress, amount
from saros_storage.backup import making
from saros_storage.backup.catalog import Catalog
from saros_storage.backup.making import BackupRun
from saros_storage.backup.points import AtIndex, AtTime, taken_time
from saros_storage.backup.repository import Repository
from saros_storage.backup.restoring import Restore
from saros_storage.backup.source import LocalSource, Source
from saros_storage.backup.verifying import verify
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import FolderInUse, StorageError, UserMistake
from saros_storage.folder.layout import NODE_FILE
from saros_storage.io.disk import LocalDisk
from saros_storage.io.folder_lock import FolderLock

_LISTED, _VERIFIED = "list", "verify"
_FAILURES = (StorageError, saros.Error, ConfigurationError, OSError)


def main(arguments: Sequence[str]) -> int:
    """Run `saros backup` and return its exit code."""
    if arguments and arguments[0] in (_LISTED, _VERIFIED):
        options = looking_parser().parse_args(arguments)
        return _run("backup", _list if options.what == _LISTED else _verify, options)
    options = parser().parse_args(arguments)
    if (options.data is None) == (options.url is None):
        parser().error("give either --data FOLDER or --url saros://host:port")
    return _run("backup", _back_up, options)


def restore(arguments: Sequence[str]) -> int:
    """Run `saros restore` and return its exit code."""
    return _run("restore", _restore, restore_parser().parse_args(arguments))


def _run(name: str, act: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    try:
        return act(options)
    except _FAILURES as error:
        sys.stderr.write(f"saros {name}: {reason(error)}\n")
        return 1


def parser() -> argparse.ArgumentParser:
    """Return the parser of `saros backup`."""
    made = CommandParser(
        prog="saros backup",
        description="Back up a folder or a server.",
        epilog="See also: saros backup list DIR, saros backup verify DIR.",
    )
    made.add_argument("--data", metavar="FOLDER", help="data folder that no process has open")
    made.add_argument("--url", metavar="TARGET", help="saros://[user:password@]host:port of a running server")
    made.add_argument("--to", required=True, metavar="DIR", help="folder of backups; created if missing")
    made.add_argument("--incremental", action="store_true", help="copy only files that earlier backups do not have")
    made.add_argument("--quiet", action="store_true", help="no progress bar")
    return made


def looking_parser() -> argparse.ArgumentParser:
    """Return the parser of `saros backup list` and `saros backup verify`."""
    made = CommandParser(prog="saros backup", description="List or verify backups.")
    made.add_argument("what", choices=(_LISTED, _VERIFIED), help="one line per backup, or read every byte")
    made.add_argument("folder", metavar="DIR", help="folder of backups")
    made.add_argument("--quiet", action="store_true", help="verify: no progress bar")
    return made


def restore_parser() -> argparse.ArgumentParser:
    """Return the parser of `saros restore`."""
    made = CommandParser(prog="saros restore", description="Create a data folder from a backup.")
    made.add_argument("--from", required=True, dest="source", metavar="DIR", help="folder of backups")
    made.add_argument("--data", required=True, metavar="NEWFOLDER", help="empty or new folder")
    made.add_argument(
        "--at", type=_point, metavar="INDEX|TIME", help="entry of the log, or a time such as 2026-11-21T18:00:00Z"
    )
    made.add_argument("--quiet", action="store_true", help="no progress bar")
    return made


def _point(text: str) -> AtIndex | AtTime:
    """Return an index of the log or a point in time. A time without a zone is in UTC."""
    if text.isdecimal():
        return AtIndex(int(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither the index of an entry nor a time such as 2026-11-21T18:00:00Z"
        ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return AtTime(((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000)


# ---------------------------------------------------------------------------------------------- backing up


def _back_up(options: argparse.Namespace) -> int:
    started = time.monotonic()
    progress = _Line(quiet=options.quiet)
    disk = LocalDisk()
    with _source(options) as source:
        if os.path.isfile(options.to):
            raise UserMistake(f"{options.to} is a file; backups need a folder: pass another one with --to", code=2003)
        disk.make_folder(options.to)
        owner = FolderLock.acquire(options.to)
        try:
            run = BackupRun(
                Repository(options.to, disk),
                source,
                SystemClock(),
                incremental=options.incremental,
                on_progress=progress.show,
            )
            catalog = run.run()
        except KeyboardInterrupt:
            progress.finish()
            sys.stderr.write(f"saros backup: interrupted; run it again to resume from what {options.to} has\n")
            raise
        finally:
            owner.release()
    progress.finish()
    done, seconds = run.progress, time.monotonic() - started
    known = f", {done.files_known} unchanged" if done.files_known else ""
    kind = "incremental" if catalog.incremental else "full"
    sys.stdout.write(
        f"backup {catalog.number} in {options.to}, {kind}: {counted(done.files_done, 'file')} copied{known},"
        f" {amount(done.size_done)} in {seconds:.1f} s ({amount(int(done.size_done / max(seconds, 1e-9)))}/s)\n"
    )
    if catalog.exact and catalog.number > 1 and not catalog.continues:
        sys.stdout.write(
            "the log since the previous backup was deleted, so states in between cannot be restored; set"
            " log_archive_bytes to keep it\n"
        )
    return 0


@contextmanager
def _source(options: argparse.Namespace) -> Iterator[Source]:
    if options.url is not None:
        password = password_of(options.url)
        where = parse_target(options.url).override(user=None, password=password, consistency=None, tls_ca=None)
        remote = RemoteCaptures(where)
        try:
            yield remote
        finally:
            remote.close()
        return
    there = os.listdir(options.data)
    if NODE_FILE not in there:
        raise UserMistake(f"{options.data} is not a data folder: it has no {NODE_FILE}", code=2003)
    if Path(options.to).resolve().is_relative_to(Path(options.data).resolve()):
        raise UserMistake(
            f"{options.to} is inside {options.data} and would be lost with it; back up to another folder", code=2003
        )
    if CLUSTER_FILE in there:
        raise UserMistake(
            f"{options.data} belongs to a node of a cluster; start the node and back it up with --url saros://host:port",
            code=2003,
        )
    with ExitStack() as until:
        try:
            source = _opened(options.data, until)
        except FolderInUse as error:
            raise StorageError(f"{error}; or back up its server with --url saros://host:port", code=2012) from error
        yield source


def _opened(folder: str, until: ExitStack) -> Source:
    """Open the database in a folder or, if the folder cannot be written, in a copy of it."""
    from saros_server.api.session import open_session

    try:
        FolderLock.acquire(folder).release()
    except OSError as error:
        if not is_unwritable(error):
            raise
        until.enter_context(hold(folder, "saros backup"))
        folder = until.enter_context(readable_copy(folder))
    session = open_session(folder, time_zone=None, options={"compaction": "off"})
    until.callback(session.close)
    return LocalSource(session.node.store)


class _Line:
    """A progress line that begins when the total is known."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._line: Progress | None = None

    def show(self, done: making.Progress) -> None:
        self.show_bytes(done.size_done, done.size, done.files_done)

    def show_bytes(self, done: int, total: int, files: int) -> None:
        if self._line is None:
            self._line = Progress(total, quiet=self._quiet)
        self._line.move_to(done)
        self._line.show_files(files)

    def finish(self) -> None:
        if self._line is not None:
            self._line.finish()


# ---------------------------------------------------------------------------------------------- restore, list, verify


def _restore(options: argparse.Namespace) -> int:
    progress = _Line(quiet=options.quiet)
    disk = LocalDisk()
    restored = Restore(Repository(options.source, disk), options.data, disk, progress.show).run(options.at)
    progress.finish()
    where = f", up to entry {restored.index} of its log" if restored.index else ""
    sys.stdout.write(
        f"{options.data}: backup {restored.number}{where}; {restored.files} files, {amount(restored.size)}\n"
    )
    return 0


def _list(options: argparse.Namespace) -> int:
    catalogs = Repository(options.folder, LocalDisk()).catalogs()
    rows: list[tuple[str, ...]] = [("backup", "kind", "files", "bytes", "restore --at (time)", "or --at (log entry)")]
    first: Catalog | None = None
    for catalog in catalogs:
        first = catalog if first is None or not catalog.continues else first
        rows.append(_row(catalog, first))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if n in _NUMBERS else cell.ljust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")
    return 0


#: Right-aligned columns of `backup list`.
_NUMBERS = (0, 2, 3)


def _row(catalog: Catalog, first: Catalog) -> tuple[str, ...]:
    """Return a line of `backup list`. `first` is the oldest backup from which the log continues to this backup."""
    kind = "incremental" if catalog.incremental else "full"
    files = sum(len(objects) for objects in catalog.objects)
    times = _span(taken_time(first), taken_time(catalog))
    entries = _span(str(first.floor), str(catalog.reached)) if catalog.exact else "-"
    return str(catalog.number), kind, str(files), amount(catalog.size), times, entries


def _span(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def _verify(options: argparse.Namespace) -> int:
    repository = Repository(options.folder, LocalDisk())
    total = sum({s.sha256: s.size for c in repository.catalogs() for objects in c.objects for s in objects}.values())
    progress = _Line(quiet=options.quiet)
    verdict = verify(repository, lambda done: progress.show_bytes(done.size, total, done.objects))
    progress.finish()
    for error, numbers in verdict.problems:
        sys.stdout.write(f"{error}; part of backup {', '.join(map(str, numbers))}\n")
    problems = len(verdict.problems)
    said = f"{problems} problem{'' if problems == 1 else 's'}" if problems else "all is well"
    sys.stdout.write(
        f"{options.folder}: {counted(verdict.backups, 'backup')}, {counted(verdict.objects, 'file')},"
        f" {amount(verdict.size)}: {said}\n"
    )
    return 1 if problems else 0
