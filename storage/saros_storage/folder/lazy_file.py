"""A TsFile that is opened at its first use, and reported if it turns out to be damaged.

Implements `scan.tsfile_access.TsFileAccess`. Once opened, a file stays readable after it is removed from the disk. A
file that is about to be removed is therefore opened first if a view may still read it (`open`). Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

from saros_storage.base.block import Block
from saros_storage.base.errors import CorruptFile
from saros_storage.io.disk import Disk
from saros_storage.scan.tsfile_access import DeviceIndex, PageSpan
from saros_storage.tsfile.reader import TsFileReader

Report = Callable[[str, CorruptFile], None]


class LazyFile:
    """A file of a partition; `report(path, error)` is called for each CorruptFile before it is raised."""

    def __init__(self, path: str, disk: Disk, report: Report) -> None:
        self._path = path
        self._disk = disk
        self._report = report
        self._lock = threading.Lock()
        self._reader: TsFileReader | None = None

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._path

    @property
    def serial(self) -> int:
        """A number unique to the file; reading this property opens the file. Raises CorruptFile, UnsupportedFile."""
        try:
            return self.open().serial
        except CorruptFile as error:
            self._report(self._path, error)
            raise

    def open(self) -> TsFileReader:
        """Return the reader; the first call maps the file. Raises CorruptFile, UnsupportedFile."""
        reader = self._reader
        if reader is None:
            with self._lock:
                if self._reader is None:
                    self._reader = self._map()
                reader = self._reader
        return reader

    def _map(self) -> TsFileReader:
        try:
            return TsFileReader(self._path, self._disk.map(self._path))
        except OSError as error:
            raise CorruptFile(self._path, 0, f"the file cannot be read: {error}") from error

    def devices(self) -> Iterator[str]:
        """Implement `TsFileAccess.devices`."""
        try:
            return iter(list(self.open().devices()))
        except CorruptFile as error:
            self._report(self._path, error)
            raise

    def device(self, device: str) -> DeviceIndex | None:
        """Implement `TsFileAccess.device`."""
        try:
            return self.open().device(device)
        except CorruptFile as error:
            self._report(self._path, error)
            raise

    def pages(self, device: DeviceIndex, measurements: Sequence[str], chunk: int) -> Sequence[PageSpan]:
        """Implement `TsFileAccess.pages`."""
        try:
            return self.open().pages(device, measurements, chunk)
        except CorruptFile as error:
            self._report(self._path, error)
            raise

    def same_pages(self, device: DeviceIndex, measurements: Sequence[str], chunk: int) -> bool:
        """Implement `TsFileAccess.same_pages`."""
        try:
            return self.open().same_pages(device, measurements, chunk)
        except CorruptFile as error:
            self._report(self._path, error)
            raise

    def read_together(
        self, device: DeviceIndex, measurements: Sequence[str], chunk: int, first: int, stop: int
    ) -> tuple[Block, int] | None:
        """Implement `TsFileAccess.read_together`."""
        try:
            return self.open().read_together(device, measurements, chunk, first, stop)
        except CorruptFile as error:
            self._report(self._path, error)
            raise

    def read(
        self, device: DeviceIndex, measurements: Sequence[str], chunk: int, first: int, stop: int
    ) -> tuple[Block, int]:
        """Implement `TsFileAccess.read`."""
        try:
            return self.open().read(device, measurements, chunk, first, stop)
        except CorruptFile as error:
            self._report(self._path, error)
            raise
