"""The Raft log: the median microseconds of a round that appends entries of 4 KiB to six groups and waits for them.

python benchmarks/bench_raft_log.py [folder]

Each case is paired with the same bytes written to a plain file by one `writev`, and one `fdatasync` if the log fsyncs.
An fsync of a growing file costs more than an fsync of a file that was filled with zeros beforehand. The log's files are
filled beforehand; the plain file is measured in both ways. `folder` should be on the disk that is to be measured.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time

from saros_cluster.multiraft.raft_log import RaftLog
from saros_cluster.raft.membership import membership
from saros_cluster.raft.messages import Entry, EntryKind, GroupId, Position
from saros_cluster.raft.ready import HardState, Persist
from saros_storage.io.disk import LocalDisk
from saros_storage.log import Durability, LogOptions

GROUPS, DATA, ROUNDS = 6, os.urandom(4096), 60
RESERVED_BYTES = 64 << 20


def rounds(run):
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[5:]) * 1e6


def log_us(folder, durability, count):
    log, _ = RaftLog.open(folder, LocalDisk(), LogOptions(durability))
    lasts = dict.fromkeys(map(GroupId, range(1, GROUPS + 1)), 0)
    for group in lasts:
        log.create(group, Position(0, 0, membership(0, (1, 2, 3))))
        log.wait(log.append(group, Persist(0, HardState(1), None, None, ())))
    shares = [count // GROUPS + (place < count % GROUPS) for place in range(GROUPS)]

    def run():
        for group, share in zip(lasts, shares, strict=True):
            if share:
                first, lasts[group] = lasts[group] + 1, lasts[group] + share
                entries = tuple(Entry(i, 1, EntryKind.DATA, DATA) for i in range(first, first + share))
                ticket = log.append(group, Persist(lasts[group], None, None, None, entries))
        log.wait(ticket)

    found = rounds(run)
    log.close()
    return found


def plain_us(folder, durability, count, reserved_bytes):
    fd = os.open(os.path.join(folder, "plain"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.pwrite(fd, bytes(reserved_bytes), 0)
    os.fsync(fd)
    parts = [DATA] * count

    def run():
        os.writev(fd, parts)
        if durability is Durability.FSYNC:
            os.fdatasync(fd)

    found = rounds(run)
    os.close(fd)
    return found


def main():
    print(f"{'durability':<12}{'entries':>8}{'log us':>10}{'plain us':>10}{'plain, zeros us':>17}{'log MB/s':>10}")
    for durability in (Durability.FSYNC, Durability.OS):
        for count in (1, 10, 100):
            with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
                ours = log_us(os.path.join(folder, "log"), durability, count)
                growing = plain_us(folder, durability, count, 0)
                filled = plain_us(folder, durability, count, RESERVED_BYTES)
            rate = count * len(DATA) / ours
            print(f"{durability.value:<12}{count:>8}{ours:>10.0f}{growing:>10.0f}{filled:>17.0f}{rate:>10.0f}")


if __name__ == "__main__":
    main()
