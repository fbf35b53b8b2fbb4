"""`saros sync`: sends the sealed files of a folder to other servers.

    saros sync add-receiver saros://centre:6667 --data FOLDER [--every S] [--bytes-per-second N] ...
    saros sync once [RECEIVER ...]          a round now        saros sync start      rounds in the background
    saros sync status [--json]              progress           saros sync stop
    saros sync drop-receiver RECEIVER

The folder may be open in an embedded database or a server, or not be open at all. Exit codes: 0 success, 1 failure, 2
wrong usage; `status` returns 3 if no sender runs in the background.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import asdict

import saros
from saros.base.target import SCHEME, parse_target, without_password
from saros.transport.sync_client import RemoteReceiver
from saros_cluster.node.cluster_file import CLUSTER_FILE
from saros_server.config.arguments import CommandParser
from saros_server.config.configuration import ConfigurationError
from saros_server.config.data_folder import reason
from saros_server.sources.plurals import counted
from saros_shell.output.progress import amount
from saros_storage.base.errors import FolderInUse, StorageError, UserMistake
from saros_storage.io.disk import LocalDisk
from saros_storage.io.folder_lock import FolderLock
from saros_sync.sender.folder import FOLDER, ReceiverOptions, SenderFolder, load_status
from saros_sync.sender.live import LiveFolder
from saros_sync.sender.process import Sender, Worker
from saros_sync.sender.status import Status
from saros_sync.transport import CHUNK_BYTES_MAX, Transport

_FAILURES = (StorageError, saros.Error, ConfigurationError, OSError)
_NOT_RUNNING = 3
_WAIT_SECONDS = 30.0
_POLL_SECONDS = 0.05
_LOG = "sync.out"
#: Files contain data and options, so they are readable only by their owner.
_UMASK = 0o077
_SHOWN_CONFLICTS = 5


def main(arguments: Sequence[str]) -> int:
    """Run `saros sync` and return its exit code."""
    options = parser().parse_args(arguments)
    os.umask(_UMASK)
    try:
        code: int = options.act(options)
    except _FAILURES as error:
        sys.stderr.write(f"saros sync: {reason(error)}\n")
        return 1
    return code


def parser() -> argparse.ArgumentParser:
    """Return the parser of `saros sync`."""
    made = CommandParser(prog="saros sync", description="Send a folder's sealed data to other servers.")
    verbs = made.add_subparsers(dest="verb", required=True, metavar="VERB")
    adding = _verb(verbs, "add-receiver", _add, "add a receiver, or change its options")
    adding.add_argument("target", metavar="TARGET", help="saros://[user:password@]host:port[?tls=ca.pem]")
    adding.add_argument("--every", type=_positive, default=60.0, metavar="S", help="seconds between rounds (60)")
    adding.add_argument("--retries", type=int, default=5, metavar="N", help="retries of a request in a round (5)")
    adding.add_argument("--bytes-per-second", type=int, default=0, metavar="N", help="0: no limit (default)")
    adding.add_argument("--chunk-bytes", type=int, default=1 << 20, metavar="N", help="bytes sent at once (1048576)")
    adding.add_argument("--flush", default="", metavar="TARGET", help="FLUSH before a round: FOLDER or saros://")
    adding.add_argument("--name", default="", help="name of this sender at the receiver")
    _verb(verbs, "drop-receiver", _drop, "remove a receiver; it keeps its data").add_argument("receiver")
    _verb(verbs, "once", _run_rounds, "run one round now").add_argument("receiver", nargs="*", help="default: all")
    starting = _verb(verbs, "start", _start, "run rounds in the background")
    starting.add_argument("--foreground", action="store_true", help="stay in the foreground")
    _verb(verbs, "stop", _stop, "stop the background rounds; start resumes them")
    showing = _verb(verbs, "status", _status, "receivers, progress, rate, lag, last error, refused devices")
    showing.add_argument("--json", action="store_true", help="print all fields as JSON")
    return made


def _verb(
    verbs: argparse._SubParsersAction[CommandParser],
    name: str,
    act: Callable[[argparse.Namespace], int],
    what: str,
) -> argparse.ArgumentParser:
    made = verbs.add_parser(name, help=what, description=what)
    made.add_argument("--data", default="./data", metavar="FOLDER", help="data folder (default ./data)")
    made.set_defaults(act=act)
    return made


def _positive(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("give a number of seconds above 0")
    return value


def _folder(options: argparse.Namespace) -> SenderFolder:
    if os.path.exists(os.path.join(options.data, CLUSTER_FILE)):
        raise UserMistake(
            f"{options.data} belongs to a node of a cluster, which holds only part of the data;"
            " send from the folders that feed the cluster",
            code=2002,
        )
    LiveFolder(options.data, LocalDisk())
    return SenderFolder(options.data, LocalDisk())


# ---------------------------------------------------------------------------------------------- receivers


def _add(options: argparse.Namespace) -> int:
    if not options.target.startswith(SCHEME):
        raise UserMistake(f"{options.target} is not the address of a server; write saros://host:port", code=2003)
    target = parse_target(options.target)
    if not 1_000 <= options.chunk_bytes <= CHUNK_BYTES_MAX or options.retries < 0 or options.bytes_per_second < 0:
        raise UserMistake(
            f"--chunk-bytes takes 1000 to {CHUNK_BYTES_MAX}; --retries and --bytes-per-second take 0 or more", code=2003
        )
    made = ReceiverOptions(
        options.target,
        options.every,
        options.retries,
        options.bytes_per_second,
        options.chunk_bytes,
        options.flush,
        options.name or os.uname().nodename,
    )
    folder = _folder(options)
    name = folder.add(target.addresses[0], made)
    sys.stdout.write(f"receiver {name}; this folder is sender {folder.sender_id()}\n")
    return 0


def _drop(options: argparse.Namespace) -> int:
    folder = _folder(options)
    path = folder.of(options.receiver)
    os.remove(path.receiver)  # a process that is sending to this receiver notices the removal and stops
    limit = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            lock = FolderLock.acquire(path.path)
            break
        except FolderInUse:
            if time.monotonic() > limit:
                raise
            time.sleep(_POLL_SECONDS)
    LocalDisk().remove_tree(path.path)
    lock.release()
    sys.stdout.write(f"dropped {options.receiver}; to delete its data, DROP SENDER there\n")
    return 0


# ---------------------------------------------------------------------------------------------- rounds


def _connect(options: ReceiverOptions) -> Transport:
    return RemoteReceiver(parse_target(options.target))


def _flush(target: str) -> None:
    with saros.connect(target) as connection:
        connection.cursor().execute("flush")


def _run_rounds(options: argparse.Namespace) -> int:
    folder = _folder(options)
    names = options.receiver or folder.receivers()
    if not names:
        raise UserMistake(
            f"{options.data} has no receivers; add one with saros sync add-receiver saros://host:port", code=2063
        )
    failed = False
    for name in names:
        try:
            _round(folder, name)
        except FolderInUse as error:
            sys.stderr.write(f"{name}: process {error.pid} is already sending to it; see saros sync status\n")
            failed = True
        except _FAILURES as error:
            sys.stderr.write(f"{name}: {error}\n")
            failed = True
    return int(failed)


def _round(folder: SenderFolder, name: str) -> None:
    started = time.monotonic()
    worker = Worker(folder, name, LocalDisk(), _connect, _flush, _failure_reporter(name))
    try:
        sent = worker.run_round()
    finally:
        worker.close()
    seconds = time.monotonic() - started
    what = f"{_files(sent.files, sent.size)} in {seconds:.1f} s" if sent.size else "nothing new"
    sys.stdout.write(f"{name}: round {sent.number}: {what}\n")
    for conflict in sent.conflicts[:_SHOWN_CONFLICTS]:
        sys.stdout.write(f"{name}: {conflict.device} is refused: {_refusal_text(conflict.owner, conflict.reason)}\n")
    if len(sent.conflicts) > _SHOWN_CONFLICTS:
        sys.stdout.write(f"{name}: and {len(sent.conflicts) - _SHOWN_CONFLICTS} more devices are refused\n")


def _failure_reporter(name: str) -> Callable[[Exception, float], None]:
    """Return a function that prints failed attempts. It abbreviates an error that repeats the previous error."""
    before = ""

    def report(error: Exception, seconds: float) -> None:
        nonlocal before
        what = "the same error" if str(error) == before else str(error)
        before = str(error)
        sys.stderr.write(f"{name}: {what}; next attempt in {seconds:g} s\n")
        sys.stderr.flush()

    return report


def _start(options: argparse.Namespace) -> int:
    folder = _folder(options)
    path = os.path.join(options.data, FOLDER)
    os.makedirs(path, mode=0o700, exist_ok=True)
    if options.foreground:
        return _run(folder, path)
    pid = _sender(options.data)
    if pid:
        raise UserMistake(f"a sender is already running for {options.data}: process {pid}", code=2012)
    log = Path(path, _LOG)
    with log.open("ab") as stream:
        child = subprocess.Popen(  # noqa: S603 (our own command)
            [sys.executable, "-m", "saros_shell", "sync", "start", "--foreground", "--data", options.data],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    limit = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < limit and child.poll() is None:
        if _sender(options.data) == child.pid:
            count = len(folder.receivers())
            sys.stdout.write(f"sending to {count} receiver{'' if count == 1 else 's'} (process {child.pid})\n")
            return 0
        time.sleep(_POLL_SECONDS)
    sys.stderr.write(f"saros sync: the sender did not come up; see {log}\n")
    return 1


def _run(folder: SenderFolder, path: str) -> int:
    from saros_server.process.logs import write_json_lines

    write_json_lines("INFO")
    lock = FolderLock.acquire(path)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    try:
        Sender(folder, LocalDisk(), _connect, _flush).run(stopped)
    finally:
        lock.release()
    return 0


def _sender(data: str) -> int:
    """Return the id of the process that sends in the background, or 0 if no process does."""
    try:
        FolderLock.acquire(os.path.join(data, FOLDER)).release()
    except FolderInUse as error:
        return error.pid or 0
    except FileNotFoundError:
        return 0
    return 0


def _stop(options: argparse.Namespace) -> int:
    pid = _sender(options.data)
    if not pid:
        sys.stderr.write(f"saros sync: no sender is running for {options.data}; start one with saros sync start\n")
        return 1
    os.kill(pid, signal.SIGTERM)
    limit = time.monotonic() + _WAIT_SECONDS
    while _sender(options.data) == pid:
        if time.monotonic() > limit:
            sys.stderr.write(f"saros sync: process {pid} has not ended in {_WAIT_SECONDS:.0f} s\n")
            return 1
        time.sleep(_POLL_SECONDS)
    sys.stdout.write(f"stopped process {pid}\n")
    return 0


# ---------------------------------------------------------------------------------------------- status


def _status(options: argparse.Namespace) -> int:
    folder, pid = _folder(options), _sender(options.data)
    found = {name: load_status(folder, name, LocalDisk()) for name in folder.receivers()}
    if options.json:
        receivers = {name: asdict(status) for name, status in found.items()}
        sys.stdout.write(json.dumps({"process": pid, "receivers": receivers}, indent=1) + "\n")
    else:
        sys.stdout.write(f"sender    {folder.sender_id()}\n")
        sys.stdout.write(f"process   {pid or 'none in the background: saros sync start'}\n")
        if not found:
            sys.stdout.write("receivers none: saros sync add-receiver saros://host:port\n")
        for name, status in found.items():
            target = without_password(folder.options(name).target)
            sys.stdout.write("".join(f"{key:<9} {value}".rstrip() + "\n" for key, value in _rows(name, target, status)))
    return 0 if pid else _NOT_RUNNING


def _refusal_text(owner: object, reason: object) -> str:
    """Return the reason why a device is refused, and its owner if it has one."""
    return f"it belongs to {owner}: {reason}" if owner else str(reason)


def _rows(name: str, target: str, status: Status) -> list[tuple[str, str]]:
    progress = f", {status.files_done} of {status.files} files, {amount(status.size_done)} of {amount(status.size)}"
    rows = [("", ""), ("receiver", f"{name} ({target})"), ("state", status.state)]
    rows += [("round", f"{status.round}{progress if status.files else ''}")] if status.round else []
    rows += [("rate", f"{amount(int(status.bytes_per_second))}/s")] if status.bytes_per_second else []
    lag = (
        f"up to date with data flushed {_ago(status.shown_ns)}"
        if status.shown_ns
        else "no data of this folder has arrived yet"
    )
    rows.append(("lag", lag))
    rows += [("error", f"{_ago(status.error_ns)}: {status.error}")] if status.error else []
    rows += [("refused", counted(status.conflicts, "device"))] if status.conflicts else []
    rows += [("", f"{d}: {_refusal_text(owner, why)}") for d, owner, why in status.conflict_list[:_SHOWN_CONFLICTS]]
    for number, ended_ns, files, size, seconds in status.history[:_SHOWN_CONFLICTS]:
        done = f"{_files(int(files), int(size))} in {seconds:.1f} s"
        rows.append(("history", f"round {number:.0f}, {_ago(int(ended_ns))}: {done}"))
    return rows


def _files(count: int, size: int) -> str:
    return f"{counted(count, 'file')}, {amount(size)}"


def _ago(time_ns: int) -> str:
    return f"{max((time.time_ns() - time_ns) / 1e9, 0.0):.0f} s ago"
