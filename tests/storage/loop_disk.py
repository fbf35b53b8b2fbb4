"""A real file system, in an image file that is mounted over a loop device. Its power can be cut.

    make        an empty file system: `mkfs` and `mount -o loop`
    cut         the shutdown ioctl: from now on nothing reaches the image, and every call on the file system fails
    restore     unmount, mount (the kernel replays the journal), unmount, check, mount again

There are three kinds of cuts, which differ in the fate of the data that is still in memory:

    DROP_LOG      the journal and the files' data are lost, as in a power cut
    WRITE_LOG     the journal is written first, the files' data is not: names and sizes are newer than contents
    WRITE_ALL     everything is written first, so nothing is lost

The process must be root, and needs loop devices and the tools of the file system; `why_unavailable` names what is
missing. Only one thread may use it. When the thread calls `restore`, no process may have an open file below the mount
point.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from waiting import wait_until

#: EXT4_IOC_SHUTDOWN in linux/fs/ext4/ext4.h and XFS_IOC_GOINGDOWN in linux/fs/xfs/libxfs/xfs_fs.h: _IOR('X', 125,
#: __u32).
_SHUTDOWN = 0x8004587D


class Cut(IntEnum):
    """The ways to shut down a file system. Their values are the flags of the ioctl."""

    WRITE_ALL = 0
    WRITE_LOG = 1
    DROP_LOG = 2


@dataclass(frozen=True, slots=True)
class FileSystem:
    """The tools of a file system.

    To make a new image, one element of `make` is used; to mount it, one element of `mount`.
    """

    name: str
    mkfs: tuple[str, ...]
    check: tuple[str, ...]
    make: tuple[tuple[str, ...], ...]
    mount: tuple[str, ...]


FILE_SYSTEMS = {
    "ext4": FileSystem(
        "ext4",
        ("mkfs.ext4", "-q", "-F"),
        ("e2fsck", "-f", "-n"),
        ((), ("-b", "1024"), ("-b", "4096")),
        # noauto_da_alloc: when a file is renamed over another file, the kernel does not write its data first.
        # data=writeback: new blocks of a file may hold data of removed files, such as records of an old log.
        (
            "data=ordered",
            "data=ordered,noauto_da_alloc",
            "data=ordered,nodelalloc,commit=1",
            "data=journal",
            "data=writeback",
            "data=writeback,nodelalloc,commit=1",
        ),
    ),
    "xfs": FileSystem(
        "xfs",
        ("mkfs.xfs", "-q", "-f"),
        ("xfs_repair", "-n"),
        ((), ("-b", "size=1024"), ("-m", "reflink=0,rmapbt=0")),
        ("logbufs=2", "logbufs=8,logbsize=256k", "wsync"),
    ),
}


class FileSystemDamaged(Exception):
    """The check of the file system reports errors although the journal was replayed."""


class LoopDisk:
    """An image file with a file system that is mounted at `root`."""

    def __init__(self, folder: Path, kind: FileSystem, mount_options: str) -> None:
        """See `loop_disk`, which makes these objects."""
        self.root = folder / "mounted"
        self._image = folder / "image"
        self._kind = kind
        self._options = mount_options

    def make(self, size: int, options: Sequence[str]) -> None:
        """Make the file system and mount it."""
        with self._image.open("wb") as file:
            file.truncate(size)
        _run(*self._kind.mkfs, *options, str(self._image))
        self.root.mkdir()
        self._mount()

    def cut(self, how: Cut) -> None:
        """Cut the power. Calls that are waiting for the file system fail."""
        root = os.open(self.root, os.O_RDONLY)
        try:
            fcntl.ioctl(root, _SHUTDOWN, struct.pack("I", how))
        finally:
            os.close(root)

    def restore(self) -> None:
        """Mount again after a cut. Raises FileSystemDamaged."""
        self.unmount()
        self._mount()
        self.unmount()
        checked = subprocess.run([*self._kind.check, str(self._image)], capture_output=True, text=True, check=False)
        if checked.returncode:
            raise FileSystemDamaged(checked.stdout + checked.stderr)
        self._mount()

    def unmount(self) -> None:
        """Unmount, and wait for killed processes, which may take a moment to close their files."""
        wait_until(lambda: not self._is_mounted() or not _fails("umount", str(self.root)))

    def _is_mounted(self) -> bool:
        """Return whether the kernel lists the mount, since the mount point itself may be unreadable after a cut."""
        mounts = Path("/proc/mounts").read_text().splitlines()
        return str(self.root) in [line.split(" ")[1] for line in mounts]

    def _mount(self) -> None:
        _run("mount", "-t", self._kind.name, "-o", f"loop,{self._options}", str(self._image), str(self.root))


@contextmanager
def loop_disk(kind: str, make: Sequence[str], mount: str, size: int = 512 << 20) -> Iterator[LoopDisk]:
    """Make a new file system of a kind for this context; unmount and remove it at the end."""
    shared_memory = "/dev/shm"
    folder = Path(tempfile.mkdtemp(prefix="saros-power-", dir=shared_memory if os.path.isdir(shared_memory) else None))
    disk = LoopDisk(folder, FILE_SYSTEMS[kind], mount)
    try:
        disk.make(size, make)
        yield disk
    finally:
        disk.unmount()
        shutil.rmtree(folder)


def why_unavailable(kind: str) -> str | None:
    """Return the reason why this machine cannot make a `loop_disk` of a kind; None if it can."""
    tools = FILE_SYSTEMS[kind]
    missing = [tool for tool in (tools.mkfs[0], tools.check[0], "mount", "umount") if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not installed"
    if os.geteuid() != 0:
        return "mounting needs root"
    try:
        with loop_disk(kind, (), tools.mount[0]) as disk:
            disk.cut(Cut.DROP_LOG)
            disk.restore()
    except subprocess.CalledProcessError as error:
        return f"{error.cmd[0]} failed: {error.stderr.strip()}"
    except OSError as error:
        return f"the file system cannot be shut down: {error}"
    return None


def write_back_some(folder: Path, chance: float, position: float) -> None:
    """Make the kernel write a part of a file to the disk now, instead of at a time of its choice.

    The numbers `chance` and `position`, both from 0 to 1, choose the file and the part.
    """
    files = sorted(os.path.join(above, name) for above, _, names in os.walk(folder) for name in names)
    if not files:
        return
    with suppress(OSError):  # another thread removed the file, or the power is off
        file = os.open(files[int(chance * len(files))], os.O_RDONLY)
        try:
            start = int(position * os.fstat(file).st_size) & ~4095
            os.posix_fadvise(file, start, 16384, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def _run(*command: str) -> None:
    subprocess.run(command, capture_output=True, text=True, check=True)


def _fails(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode != 0
