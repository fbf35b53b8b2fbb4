"""The sender's process. It sends one round, or sends rounds to each receiver at intervals until it is stopped.

    Worker     one receiver: its lock, its rounds, its status        in a thread of its own if run by `Sender`
    Sender     one worker for each receiver; polls for added receivers

If a receiver is unreachable or refuses a round, its worker tries again after its interval. Other workers are not
affected. Options are read again before each round.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from msgspec.structs import replace

from saros_storage.base.errors import FolderInUse, UserMistake
from saros_storage.folder.layout import write_synced
from saros_storage.io.disk import Disk
from saros_storage.io.folder_lock import FolderLock
from saros_sync.sender.folder import ReceiverOptions, SenderFolder, load_status
from saros_sync.sender.live import LiveFolder
from saros_sync.sender.sending import Progress, Retrying, RoundResult, Sending, Stopped
from saros_sync.sender.status import CONFLICTS_MAX, HISTORY_MAX, encode_status
from saros_sync.transport import Transport

_logger = logging.getLogger(__name__)
#: The minimum time between two writes of the status during a round.
_TOLD_NS = 500_000_000
#: The interval at which a sender polls for added receivers, and a worker for options that it could not read yet.
_LOOK_SECONDS = 1.0
_END_SECONDS = 10.0

Connect = Callable[[ReceiverOptions], Transport]
#: Requests a FLUSH from a target.
Flush = Callable[[str], None]


class Worker:
    """Sends the rounds of one receiver. A worker belongs to one thread, but any thread may call `stop`."""

    def __init__(
        self,
        folder: SenderFolder,
        name: str,
        disk: Disk,
        connect: Connect,
        flush: Flush,
        retrying: Retrying = lambda *_: None,
    ) -> None:
        """Take the receiver's lock. Raises UserMistake 2063, FolderInUse."""
        self._folder = folder
        self._name = name
        self._disk = disk
        self._connect = connect
        self._flush = flush
        self._retrying = retrying
        self._own = folder.of(name)
        self._lock = FolderLock.acquire(self._own.path)
        self._stopped = threading.Event()
        self._status = load_status(folder, name, disk)
        self._told_ns = 0
        self._started_ns = 0
        self._options: ReceiverOptions | None = None
        self._transport: Transport | None = None
        self._sending: Sending | None = None

    # ------------------------------------------------------------------ rounds

    def run_round(self) -> RoundResult:
        """Send a round. After the call, the receiver shows all data that was sealed at the time of the call.

        Raises StorageError (Unreachable, Stopped, and others), OSError. The status then contains the error, except
        Stopped, and the next call resumes the round.
        """
        self._started_ns = time.monotonic_ns()
        try:
            sending = self._ready()
            unflushed = self._flushed()
            began_ns = time.time_ns()
            sent = first = sending.run_round()
            if first.is_resumed:
                self._save_status(**self._past(first))
                began_ns = time.time_ns()
                sent = sending.run_round()
        except Stopped:
            self._save_status(state="stopped")
            raise
        except Exception as error:
            self._save_status(state="failed", error=str(error), error_ns=time.time_ns())
            raise
        self._done(sent, began_ns, unflushed)
        return sent if sent is first else replace(sent, files=first.files + sent.files, size=first.size + sent.size)

    def _flushed(self) -> str:
        """Request a FLUSH if the options name a target.

        If the FLUSH failed, return the reason. The round then sends the files that are already sealed.
        """
        if self._options is None or not self._options.flush:
            return ""
        try:
            self._flush(self._options.flush)
        except Exception as error:  # noqa: BLE001 (any error of the instance)
            return f"sent without a FLUSH: {error}"
        return ""

    def _ready(self) -> Sending:
        options = self._folder.options(self._name)
        if self._sending is None or options != self._options:
            self._disconnect()
            self._options, self._transport = options, self._connect(options)
            self._sending = Sending(
                LiveFolder(self._folder.data, self._disk),
                self._own,
                options,
                self._folder.sender_id(),
                self._transport,
                self._disk,
                lambda seconds: not self._stopped.wait(seconds),
                self._progressed,
                retrying=self._retrying,
            )
        return self._sending

    def run(self) -> None:
        """Send rounds until `stop` is called or the receiver is dropped."""
        try:
            while not self._stopped.is_set() and self._name in self._folder.receivers():
                self._run_once()
        finally:
            self.close()

    def _run_once(self) -> None:
        try:
            self.run_round()
        except Stopped:
            return
        except Exception as error:  # noqa: BLE001 (the top of a thread)
            _logger.warning("a round failed", extra={"receiver": self._name, "error": str(error)})
        self._stopped.wait(self._options.every_s if self._options is not None else _LOOK_SECONDS)

    def stop(self) -> None:
        """Stop after the current step. The next start resumes the current round."""
        self._stopped.set()

    def close(self) -> None:
        """Disconnect from the receiver, and release its lock."""
        self._disconnect()
        self._lock.release()

    def _disconnect(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = self._sending = None

    # ------------------------------------------------------------------ status

    def _progressed(self, progress: Progress) -> None:
        now_ns = time.monotonic_ns()
        if now_ns - self._told_ns >= _TOLD_NS:
            self._told_ns = now_ns
            self._save_status(state="sending", **self._figures(progress))

    def _figures(self, progress: Progress) -> dict[str, object]:
        seconds = max((time.monotonic_ns() - self._started_ns) / 1e9, 1e-3)
        return {
            "round": progress.round,
            "files": progress.files,
            "files_done": progress.files_done,
            "size": progress.size,
            "size_done": progress.size_done,
            "bytes_per_second": progress.size_done / seconds,
            "failures": progress.failures,
        }

    def _done(self, sent: RoundResult, began_ns: int, problem: str) -> None:
        self._save_status(
            state="waiting",
            round=sent.number,
            files=sent.files,
            files_done=sent.files,
            size=sent.size,
            size_done=sent.size,
            failures=0,
            shown_ns=began_ns,
            error=problem,
            error_ns=time.time_ns() if problem else 0,
            conflicts=len(sent.conflicts),
            conflict_list=[[c.device, c.owner, c.reason] for c in sent.conflicts[:CONFLICTS_MAX]],
            **self._past(sent),
        )

    def _past(self, sent: RoundResult) -> dict[str, object]:
        """Return the changes of the status that add a finished round to the history.

        If earlier attempts sent a part of the round, only the files and bytes of this attempt count.
        """
        if not sent.size and not sent.is_new:
            return {}
        seconds = (time.monotonic_ns() - self._started_ns) / 1e9
        past: list[float] = [sent.number, time.time_ns(), sent.files, sent.size, round(seconds, 3)]
        rate = {"bytes_per_second": sent.size / seconds} if sent.size else {}
        return {"history": [past, *self._status.history][:HISTORY_MAX], **rate}

    def _save_status(self, **changes: object) -> None:
        self._status = replace(self._status, **changes)
        try:
            write_synced(self._disk, self._own.status, encode_status(self._status))
        except OSError as error:
            _logger.warning("the status cannot be written", extra={"receiver": self._name, "error": str(error)})


class Sender:
    """Runs one worker for each receiver."""

    def __init__(self, folder: SenderFolder, disk: Disk, connect: Connect, flush: Flush) -> None:
        self._folder = folder
        self._disk = disk
        self._connect = connect
        self._flush = flush
        self._workers: dict[str, tuple[Worker, threading.Thread]] = {}

    def run(self, stopped: threading.Event) -> None:
        """Send to all receivers until `stopped` is set."""
        while not stopped.wait(_LOOK_SECONDS if self._workers else 0.0):
            self._start_workers()
            if not self._workers:
                stopped.wait(_LOOK_SECONDS)
        for worker, _ in self._workers.values():
            worker.stop()
        limit = time.monotonic() + _END_SECONDS
        for _, thread in self._workers.values():
            thread.join(max(limit - time.monotonic(), 0.0))

    def _start_workers(self) -> None:
        self._workers = {name: found for name, found in self._workers.items() if found[1].is_alive()}
        for name in self._folder.receivers():
            if name in self._workers:
                continue
            try:
                worker = Worker(self._folder, name, self._disk, self._connect, self._flush)
            except (FolderInUse, UserMistake):
                continue  # another process sends to the receiver, or the receiver was just dropped
            thread = threading.Thread(target=worker.run, name=f"saros-sync-{name}", daemon=True)
            self._workers[name] = (worker, thread)
            thread.start()
