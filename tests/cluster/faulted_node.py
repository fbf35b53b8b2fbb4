"""The process of a node with faults at chosen points: `python faulted_node.py start --foreground --data D ...`.

    D/befall.NAME     when the process reaches point NAME, it renames this file to D/befallen.NAME, and stops itself
                      (SIGSTOP); the test then kills or continues the process
    D/full            while this file exists, the disk is full
    D/slow            while this file exists, each fsync takes longer; the file contains the additional seconds
    D/cut             while this file exists, the node and the others do not hear each other

The node differs from a normal node in three ways: some of its functions also check whether these files exist; leases of
captures are short; and after a slow write, its log counts as slow for only a short time. A point is the end of a step,
and has the name of the step (`META_STEPS`, `POINTS`); see `docs/protocol/expansion.md`.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from saros_cluster.data import region_apply
from saros_cluster.data.ownership import Ownership
from saros_cluster.multiraft import log_latency
from saros_cluster.multiraft.host import GroupHost
from saros_cluster.multiraft.peers import Unreachable
from saros_cluster.node.groups import Groups
from saros_cluster.reconfiguration import reconciler
from saros_cluster.topology import commands, transitions
from saros_cluster.transport.grpc_peers import GrpcPeers
from saros_shell.main import main
from saros_storage import region
from saros_storage.checkpoint import fetch
from saros_storage.io.disk import LocalDisk, LocalFile

#: Steps named after a command: a node takes the step when it applies the command from the meta group's log.
META_STEPS = ("Begin", "Ready", "Proceed", "Fenced", "Opened", "Loaded", "Dropped", "Regrouped")
#: The function that takes each of the other steps, by the name of the step.
POINTS: dict[str, tuple[object, str]] = {
    "a group begins": (Groups, "_begin"),
    "a snapshot is installed": (region_apply.RegionMachine, "install"),
    "slots are fenced": (Ownership, "fence"),
    "slots are opened": (Ownership, "open"),
    "slots are captured": (region_apply.RegionMachine, "capture_left"),
    "a file is pulled": (fetch, "_put"),
    "all is pulled": (reconciler, "pull_capture"),
    "files are linked": (region, "link_arrived"),
    "files have arrived": (region.Region, "arrive"),
    "slots are let go of": (Ownership, "leave"),
    "a move is settled": (Ownership, "complete"),
    "members are proposed": (GroupHost, "_change_membership"),
    "a group is left": (Groups, "_leave"),
}
_POLL_SECONDS = 0.05
_LEASE_NS = 20_000_000_000
_RECOVERY_NS = 5_000_000_000


class Befallen:
    """The faults of a node. `folder` is the node's data folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def plant(self) -> None:
        """Wrap the node's functions. This must happen before the node starts."""
        for name in META_STEPS:
            kind = getattr(commands, name)
            self._stop_after(transitions, "apply", name, lambda _, command, *rest, kind=kind: isinstance(command, kind))
        for name, (holder, function) in POINTS.items():
            self._stop_after(holder, function, name)
        for holder, function in ((LocalFile, "write"), (LocalFile, "reserve"), (LocalDisk, "create")):
            self._need_room(holder, function)
        self._slow_down()
        self._cut_off()
        region_apply.CAPTURED_NS = _LEASE_NS
        log_latency.RECOVERY_NS = _RECOVERY_NS

    def _stop_after(
        self, holder: object, name: str, point: str, is_meant: Callable[..., bool] = lambda *_: True
    ) -> None:
        do = getattr(holder, name)

        def doing(*args, **more):
            found = do(*args, **more)
            if is_meant(*args):
                self._reach(point)
            return found

        setattr(holder, name, doing)

    def _reach(self, point: str) -> None:
        try:
            os.rename(self._folder / f"befall.{point}", self._folder / f"befallen.{point}")
        except FileNotFoundError:
            return
        os.kill(os.getpid(), signal.SIGSTOP)

    def _need_room(self, holder: object, name: str) -> None:
        do = getattr(holder, name)

        def doing(*args):
            if (self._folder / "full").exists():
                raise OSError(errno.ENOSPC, "no space left on device")
            return do(*args)

        setattr(holder, name, doing)

    def _slow_down(self) -> None:
        sync = LocalFile.sync

        def syncing(file: LocalFile) -> None:
            with suppress(FileNotFoundError):
                time.sleep(float((self._folder / "slow").read_text()))
            sync(file)

        LocalFile.sync = syncing  # type: ignore[method-assign]

    # ------------------------------------------------------------------ links

    def _is_cut(self) -> bool:
        return (self._folder / "cut").exists()

    def _cut_off(self) -> None:
        start, send, call, stream = GrpcPeers.start, GrpcPeers.send, GrpcPeers.call, GrpcPeers.stream

        def late(handler):
            """Return a handler of requests that waits while the link is cut."""

            def handle(*args):
                while self._is_cut():
                    time.sleep(_POLL_SECONDS)
                return handler(*args)

            return handle

        def starting(peers, host, port, *, receive, calls, streams):
            def receiving(sender, messages) -> None:
                if not self._is_cut():
                    receive(sender, messages)

            heard = [{name: late(handler) for name, handler in kind.items()} for kind in (calls, streams)]
            return start(peers, host, port, receive=receiving, calls=heard[0], streams=heard[1])

        def sending(peers, node, messages) -> None:
            if not self._is_cut():
                send(peers, node, messages)

        def asking(ask):
            def asked(peers, node, *rest):
                if self._is_cut():
                    raise Unreachable(node, "the link is cut")
                return ask(peers, node, *rest)

            return asked

        GrpcPeers.start, GrpcPeers.send = starting, sending  # type: ignore[method-assign]
        GrpcPeers.call, GrpcPeers.stream = asking(call), asking(stream)  # type: ignore[method-assign]


if __name__ == "__main__":
    Befallen(Path(sys.argv[sys.argv.index("--data") + 1])).plant()
    sys.exit(main())
