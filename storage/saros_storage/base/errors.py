"""The errors that storage raises, one class per reaction of the caller; `saros_wire.status` lists the codes.

StorageError                 root: `code` and a sentence that says what to do
 ├─ UserMistake              the request is wrong: change it (type mismatch, unknown path, illegal name, ...)
 ├─ CorruptFile              a file is damaged: it is set aside, other files stay readable
 ├─ UnsupportedFile          a legal file that uses a feature Saros does not read (encoding, version, encryption)
 ├─ NewerFormat              a newer version of Saros wrote the data: use that version
 ├─ FolderInUse              another process owns the data folder
 ├─ DiskFull                 no space: reads continue, writes resume when there is space
 ├─ LogFailed                the log could not be made durable: this store accepts no further writes
 └─ StoreClosed              the store was closed during the call
"""

from __future__ import annotations


class StorageError(Exception):
    """Root of storage's errors. `code` is a status code of `saros_wire.status`."""

    code: int = 2000

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class UserMistake(StorageError):
    """The request is invalid as it stands; `code` gives the kind of mistake."""

    code = 701


class CorruptFile(StorageError):
    """The bytes of `file` at `offset` violate the format."""

    code = 2010

    def __init__(self, file: str, offset: int, reason: str) -> None:
        super().__init__(f"corrupt file {file} at byte {offset}: {reason}")
        self.file = file
        self.offset = offset
        self.reason = reason


class UnsupportedFile(StorageError):
    """`file` uses `feature`, which Saros does not read."""

    code = 2011

    def __init__(self, file: str, feature: str) -> None:
        super().__init__(f"file {file} uses {feature}, which this version of Saros does not read")
        self.file = file
        self.feature = feature


class NewerFormat(StorageError):
    """A newer version of Saros wrote `subject`, in a format that this version does not know."""

    code = 2015

    def __init__(self, subject: str, detail: str = "") -> None:
        super().__init__(f"{subject} was written by a newer Saros{detail and f' ({detail})'}")


class FolderInUse(StorageError):
    """The data folder belongs to process `pid`."""

    code = 2012

    def __init__(self, folder: str, pid: int | None, remedy: str = "stop it, or choose another folder") -> None:
        owner = "another process" if pid is None else f"process {pid}"
        super().__init__(f"data folder {folder} is in use by {owner}: {remedy}")
        self.folder = folder
        self.pid = pid


class DiskFull(StorageError):
    """No space is left on the disk for a write."""

    code = 611


class LogFailed(StorageError):
    """The write-ahead log could not be written or fsynced; no later write is acknowledged."""

    code = 2013


class StoreClosed(StorageError):
    """The store is closed."""

    code = 2014
