"""Verify that all parts of backups exist and are unchanged, without changing anything. Runs on one thread."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from saros_storage.backup.catalog import StoredObject
from saros_storage.backup.repository import Repository
from saros_storage.base.errors import StorageError
from saros_storage.checkpoint.checkpoint import LogPiece
from saros_storage.log.record import scan


class BackupReport(msgspec.Struct):
    """The numbers of verified backups and objects, the objects' total size in bytes, and the problems found."""

    backups: int = 0
    objects: int = 0
    size: int = 0
    #: Pairs of a problem and the numbers of the backups that it affects.
    problems: list[tuple[StorageError, list[int]]] = msgspec.field(default_factory=list)


def verify(repository: Repository, on_report: Callable[[BackupReport], None] = lambda _: None) -> BackupReport:
    """Read all objects of all backups.

    Raises CorruptFile for a damaged catalog, UserMistake 2052 if there is no backup.
    """
    catalogs = repository.catalogs()
    users: dict[StoredObject, list[int]] = {}
    log: dict[StoredObject, LogPiece] = {}
    for catalog in catalogs:
        for stored in {stored for objects in catalog.objects for stored in objects}:
            users.setdefault(stored, []).append(catalog.number)
        log |= {stored: piece for piece, stored in catalog.log()}
    verdict = BackupReport(len(catalogs))
    for stored, numbers in users.items():
        try:
            content = b"".join(repository.read(stored)) if stored in log else None
            if content is None:
                for _ in repository.read(stored):
                    pass
            elif not _is_complete(memoryview(content), log[stored]):
                raise StorageError(f"the log in {repository.object_path(stored)} is incomplete")
        except (StorageError, OSError) as error:
            known = error if isinstance(error, StorageError) else StorageError(str(error))
            verdict.problems.append((known, numbers))
        verdict.objects += 1
        verdict.size += stored.size
        on_report(verdict)
    return verdict


def _is_complete(content: memoryview, piece: LogPiece) -> bool:
    return len(scan(content, piece.first, piece.salt).records) == max(piece.last - piece.first + 1, 0)
