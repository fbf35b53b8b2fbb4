"""LOAD: find the files of a statement, check that they may be read, and load them.

    LOAD 'file'      that file
    LOAD 'folder'    all *.tsfile files below it, in order of precedence: by folder, then by time and version in IoTDB's
                     names, so that unsequence files come after the sequence files that they correct

Each file is loaded completely or not at all. If some of several files cannot be loaded, the other files are loaded, and
the error lists the failures. A server reads only files below the folders that its configuration lists. Symbolic links
are resolved before the check.

Runs on the caller's thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from saros_engine.base.database import Database
from saros_engine.catalog.views import require_no_views
from saros_grammar.syntax.ast import Load
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.write_request import WriteRequest
from saros_storage.folder.layout import RESOURCE, FileName
from saros_storage.loading.loader import LoadOptions

_NOT_ALLOWED, _NOT_READABLE = 2050, 2051
_SUFFIX = ".tsfile"
#: The maximum number of failures that an error lists.
_FAILURES_MAX = 5


def load_files(
    store: Database, statement: Load, level: int, folders: Sequence[str] | None, request: WriteRequest
) -> int:
    """Execute a LOAD; return the number of files loaded. `folders` are the folders that may be read; None allows all.

    Raises UserMistake 2050, 2051, 503 (a view is at the path of a series to create), and the errors of `Database.load`.
    """
    options = LoadOptions(statement.level or level, statement.verify is not False, require_no_views)
    paths = list(_files(statement.source, folders))
    failures: list[StorageError] = []
    for path in paths:
        try:
            store.load(path, options, request=request)
        except StorageError as error:
            if len(paths) == 1:
                raise
            failures.append(error)
            continue
        if statement.delete:
            _remove(path)
    if failures:
        listed = "; ".join(error.message for error in failures[:_FAILURES_MAX])
        counts = f"{len(failures)} of {len(paths)} files could not be loaded, the others were"
        raise StorageError(f"{counts}: {listed}", code=failures[0].code)
    return len(paths)


def _files(source: str, folders: Sequence[str] | None) -> Iterator[str]:
    root = os.path.realpath(source)
    _check_allowed(source, root, folders)
    if not os.path.isdir(root):
        yield root
        return
    found = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names]
    chosen = sorted((path for path in found if path.endswith(_SUFFIX)), key=_order)
    if not chosen:
        raise UserMistake(f"{source} contains no *{_SUFFIX} file", code=_NOT_READABLE)
    for path in chosen:
        real = os.path.realpath(path)
        _check_allowed(path, real, folders)
        yield real


def _check_allowed(source: str, real: str, folders: Sequence[str] | None) -> None:
    if folders is None:
        return
    for folder in folders:
        allowed = os.path.realpath(folder)
        if os.path.commonpath((allowed, real)) == allowed:
            return
    raise UserMistake(
        f"{source} is outside the folders that this server loads files from: see its option load_folders",
        code=_NOT_ALLOWED,
    )


def _order(path: str) -> tuple[str, int, int, str]:
    folder, name = os.path.split(path)
    parsed = FileName.parse(name)
    return (folder, 0, 0, name) if parsed is None else (folder, parsed.time, parsed.version, name)


def _remove(path: str) -> None:
    for name in (path, path + RESOURCE):
        if os.path.exists(name):
            os.remove(name)
