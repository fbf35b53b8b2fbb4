"""Senders and a receiver in one process, each with its own disk, joined by a link that tests control.

    edge     a store with a sender, as with `saros sync`          centre     a store that shows the received data

After each round, the centre has exactly the data that was in files of the edge when the round's snapshot was taken.
Until then, the centre has the data of the previous round.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeVar, cast

from manual_clock import CountingClock
from storage.crash_disk import CrashDisk
from storage.store_model import Operation, State, read_store
from storage.store_opening import FOLDER, NOW_MS, OPTIONS, Wrong, open_store

from saros_storage.base.errors import CorruptFile
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import Disk
from saros_storage.io.folder_lock import FolderLock
from saros_storage.store import Store
from saros_sync.receiver import incoming
from saros_sync.receiver.catalog import Catalog
from saros_sync.receiver.checking import Executor, InlineExecutor
from saros_sync.receiver.mirror import MirrorFolder, load_document
from saros_sync.receiver.receiver import Receiver
from saros_sync.receiver.request_checks import Requester
from saros_sync.receiver.synced_store import open_receiver
from saros_sync.round import Content, content_of
from saros_sync.sender.folder import ReceiverOptions, SenderFolder
from saros_sync.sender.live import LiveFolder, ReadAt
from saros_sync.sender.sending import RoundResult, Sending
from saros_sync.transport import Answer, BeginReply, Transport

T = TypeVar("T")
ADDRESS = "centre:6667"
NAME = "centre_6667"
#: Options of a sender: chunks are so small that each content (a file or document of a round) has many of them.
SENDING = ReceiverOptions(f"saros://{ADDRESS}", chunk_bytes=100, name="edge")
# The number of bytes between two fsyncs: it is so low that a content is fsynced several times while it arrives.
incoming.GOOD_BYTES = 300


class _Nobody:
    def release(self) -> None:
        return


class Late:
    """An executor that runs a task when its result is awaited. Implements `Executor`."""

    def begin(self, do: Callable[[], T]) -> Future[T]:
        return _Waited(do)

    def close(self) -> None:
        return


class _Waited(Future[T]):
    def __init__(self, do: Callable[[], T]) -> None:
        super().__init__()
        self._do = do

    def result(self, timeout: float | None = None) -> T:
        return self._do()


class Unheard(InlineExecutor):
    """An executor that runs a task at once, but reports it as done only when asked a second time.

    Implements `Executor`.
    """

    def begin(self, do: Callable[[], T]) -> Future[T]:
        found = super().begin(do)
        error = found.exception()
        unheard: _Unheard[T] = _Unheard()
        if error is None:
            unheard.set_result(found.result())
        else:
            unheard.set_exception(error)
        return unheard


class _Unheard(Future[T]):
    asked = False

    def done(self) -> bool:
        asked, self.asked = self.asked, True
        return asked and super().done()


#: All kinds of executors.
CHORES = (InlineExecutor(), Late(), Unheard())


def open_centre(
    disk: CrashDisk, options: StoreOptions = OPTIONS, chores: Executor | None = None
) -> tuple[Store, Receiver]:
    disk.make_folder(FOLDER)
    clock = CountingClock(NOW_MS * 1_000_000)
    store = Store(FOLDER, options, disk, clock, cast("FolderLock", _Nobody()))
    try:
        return store, open_receiver(store, FOLDER, disk, clock, chores or InlineExecutor())
    except BaseException:
        store.close()
        raise


class Direct:
    """A direct connection to a receiver in this process. Implements `Transport`."""

    def __init__(self, receiver: Callable[[], Receiver], speaker: Requester | None = None) -> None:
        self._receiver = receiver
        self._speaker = speaker or Requester()
        self.chunks = 0

    def begin(self, sender: str, name: str, number: int, document: Content) -> BeginReply:
        return self._receiver().begin(self._speaker, sender, name, number, document)

    def chunk(self, sender: str, number: int, sha256: str, offset: int, crc32: int, data: memoryview) -> Answer:
        self.chunks += 1
        have = self._receiver().chunk(self._speaker, sender, number, sha256, offset, crc32, bytes(data))
        return lambda: have

    def commit(self, sender: str, number: int) -> BeginReply:
        return self._receiver().commit(self._speaker, sender, number)

    def close(self) -> None:
        return


class Edge:
    """A store with a sender. `line` is the link to the receiver."""

    def __init__(self, line: Transport, disk: CrashDisk | None = None, options: ReceiverOptions = SENDING) -> None:
        self.disk = disk or CrashDisk()
        self.line = line
        self.options = options
        self.store = open_store(self.disk)
        self.restart_sender()

    def restart_sender(self) -> None:
        self.sending = sender_beside(self.disk, self.line, self.options)

    def tell(self, *operations: Operation) -> None:
        for operation in operations:
            operation.run(self.store)

    def sync(self) -> RoundResult:
        """Flush, and run a round."""
        self.store.flush()
        return self.sending.run_round()

    @property
    def id(self) -> str:
        return SenderFolder(FOLDER, self.disk).sender_id()


def sender_beside(disk: CrashDisk, line: Transport, options: ReceiverOptions = SENDING) -> Sending:
    folder = SenderFolder(FOLDER, cast("Disk", disk))
    folder.add(ADDRESS, options)

    return Sending(
        LiveFolder(FOLDER, disk),
        folder.of(NAME),
        options,
        folder.sender_id(),
        line,
        disk,
        lambda _: True,
        read=reads(disk),
    )


def reads(disk: CrashDisk) -> ReadAt:
    """Return a `read_at` function for a disk's files."""
    return lambda path, offset, count: bytes(disk.map(path)[offset : offset + count])


class Centre:
    """A store that receives rounds of senders."""

    def __init__(self, disk: CrashDisk | None = None, chores: Executor | None = None) -> None:
        self.disk = disk or CrashDisk()
        self.chores = chores
        self.store, self.receiver = open_centre(self.disk, chores=chores)

    def restart(self) -> None:
        self.close()
        self.store, self.receiver = open_centre(self.disk, chores=self.chores)

    def line(self, speaker: Requester | None = None) -> Direct:
        return Direct(lambda: self.receiver, speaker)

    @property
    def catalog(self) -> Catalog:
        return self.receiver.catalog

    def states(self) -> list[State]:
        """Return the state of the store, which is the only state that can be seen."""
        return [devices_of(self.store)]

    def check_nothing_left(self, context: str) -> None:
        """Check that the receiver stores no contents but those that it shows, and that no round is in progress.

        Raises Wrong.
        """
        folders = set(self.disk.list(f"{FOLDER}/sync-receiver")) - {"device_owner"}
        if folders != set(self.catalog.senders) or self.receiver.rounds_in_progress():
            raise Wrong(
                f"{context}: folders of {folders} are left, rounds {self.receiver.rounds_in_progress()} in hand"
            )
        for sender, mirror in self.receiver.shown.mirrors.items():
            if mirror.damaged:
                raise Wrong(f"{context}: {mirror.damaged} damaged")
            check_kept(context, self.disk, f"{FOLDER}/sync-receiver/{sender}", mirror.document)

    def close(self) -> None:
        self.receiver.close()
        self.store.close()


def check_kept(context: str, disk: CrashDisk, path: str, document: Content, may_lack: str = "\n") -> None:
    """Check that the folder of a sender has exactly the sender's last round, with the right contents. Raises Wrong.

    Files whose names end with `may_lack` may be missing.
    """
    folder = MirrorFolder(path)
    try:
        round_ = load_document(disk, folder, document)
    except (CorruptFile, FileNotFoundError) as error:
        raise Wrong(f"{context}: {error}") from error
    names, wanted = set(disk.list(folder.data)), folder.names(document, round_)
    names |= {name for name in wanted if name.endswith(may_lack)}
    if names != wanted or disk.list(folder.folder) != ["data"]:
        raise Wrong(f"{context}: {names ^ wanted} are too many or missing, of {disk.list(folder.folder)}")
    for content in round_.contents().values():
        file = folder.schema(content) if content == round_.schema else folder.tsfile(content)
        if content_of(bytes(disk.map(file))) != content:
            raise Wrong(f"{context}: {file} is not what its name says")


def devices_of(store: object) -> State:
    """Return the content of a store, without empty databases."""
    found = read_store(store)  # type: ignore[arg-type]
    return replace(found, databases=frozenset())
