"""LOAD: which files a statement means, and whether they may be read.

    LOAD 'file'      that file
    LOAD 'folder'    all *.tsfile below it, in the order in which they count: by folder, then by time and version in
                     IoTDB's names, so that unsequence files come after the sequence files that they correct

Each file is all or nothing; of several, those that can be loaded are, and the error says which could not. A server
reads only below the folders that its configuration names: links are followed first, so that none leads out of them.

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
#: Failures that an error of several files names.
_FAILURES_MAX = 5


def load_files(
    store: Database, statement: Load, level: int, folders: Sequence[str] | None, request: WriteRequest
) -> int:
    """Carry out a LOAD; how many files were loaded. `folders`: those that may be read; None: any.

    Raises UserMistake 2050, 2051, 503 (a view is where a series would be made), and what `Database.load` raises.
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
        counts = f"{len(failures)} of {len(paths)} files could not be loaded, the others are"
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
        raise UserMistake(f"{source} holds no *{_SUFFIX} file", code=_NOT_READABLE)
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
    raise UserMistake(f"{source} lies in none of the folders that this server loads files from", code=_NOT_ALLOWED)


def _order(path: str) -> tuple[str, int, int, str]:
    folder, name = os.path.split(path)
    parsed = FileName.parse(name)
    return (folder, 0, 0, name) if parsed is None else (folder, parsed.time, parsed.version, name)


def _remove(path: str) -> None:
    for name in (path, path + RESOURCE):
        if os.path.exists(name):
            os.remove(name)
