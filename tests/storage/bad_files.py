"""Damaged files of a data folder: a store that reads such a file must report the damage or return the right data.

    flip      some bits                 cut       the end, or a part of the middle
    fill      a block of one byte       splice    a part of the file in another place, or of another file
    count     a number that is huge, small or negative in place of 4 or 8 bytes
    bomb      a text of JSON that is very deep or very long, in place of a part

The function `attack` reads damaged files as the store does. It raises NotSurvived if a read raises any exception but
CorruptFile, UnsupportedFile or StorageError 2015 (a newer format), if it returns a wrong value although the format has
a checksum, or if it takes more than a second or too much memory.
"""

from __future__ import annotations

import operator
import struct
import time
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random

from storage.crash_disk import CrashDisk
from storage.store_model import delete_points, flush, read_store, write_batch, write_rows
from storage.store_opening import FOLDER, OPTIONS, open_store

from saros_storage.base.errors import CorruptFile, StorageError, UnsupportedFile
from saros_storage.folder.manifest import decode_manifest
from saros_storage.folder.node_file import check_node_file
from saros_storage.folder.resource import decode_resource
from saros_storage.folder.schema_file import load_schema
from saros_storage.log import LogOptions, SegmentedLog
from saros_storage.scan.tsfile_access import DeviceIndex
from saros_storage.tsfile.reader import TsFileReader

SECONDS_MAX = 1.0
#: The memory that a read of a file may take. The limit is large, since the damaged header of a page may announce 16 M
#: rows of 8 bytes.
MEMORY_BYTES_MAX = 512 << 20
_NEWER = 2015


class NotSurvived(AssertionError):
    """Reading a bad file had a forbidden effect."""


# ---------------------------------------------------------------------- mutations

Mutate = Callable[[Random, bytearray, bytes], None]


def _flip(chance: Random, data: bytearray, other: bytes) -> None:
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _cut(chance: Random, data: bytearray, other: bytes) -> None:
    start = chance.randrange(len(data))
    del data[start : chance.choice((len(data), start + chance.randrange(1, 64)))]


def _fill(chance: Random, data: bytearray, other: bytes) -> None:
    start = chance.randrange(len(data))
    size = min(chance.choice((1, 8, 64, 512)), len(data) - start)
    data[start : start + size] = bytes([chance.choice((0, 255, 0x20, chance.randrange(256)))]) * size


def _splice(chance: Random, data: bytearray, other: bytes) -> None:
    source = chance.choice((bytes(data), other))
    start = chance.randrange(len(source))
    part = source[start : start + chance.randrange(1, 200)]
    place = chance.randrange(len(data))
    data[place : place + chance.choice((0, len(part)))] = part


def _count(chance: Random, data: bytearray, other: bytes) -> None:
    number = chance.choice((-1, -(2**31), 2**31 - 1, 2**24, 2**28, 65_535, 0, 1 << 20))
    form = chance.choice(("<i", ">i", "<q", ">q"))
    place = chance.randrange(max(len(data) - 8, 1))
    packed = struct.pack(form, number)
    data[place : place + len(packed)] = packed


def _count_as_text(chance: Random, data: bytearray, other: bytes) -> None:
    """Replace a sequence of digits by an extreme number."""
    digits = [n for n, byte in enumerate(data) if 48 <= byte < 58]
    if not digits:
        _count(chance, data, other)
        return
    start = end = chance.choice(digits)
    while end < len(data) and 48 <= data[end] < 58:
        end += 1
    data[start:end] = chance.choice((b"9" * 30, b"-1", b"1e999", b"9" * 5_000, b"0", b"null", b"[]", b'"x"', b"1.5"))


def _bomb(chance: Random, data: bytearray, other: bytes) -> None:
    place = chance.randrange(len(data))
    data[place:place] = chance.choice((b"[" * 100_000, b'{"a":' * 50_000, b'"' + b"x" * 1_000_000, b"\x00" * 1_000_000))


MUTATIONS: tuple[Mutate, ...] = (_flip, _flip, _flip, _cut, _fill, _splice, _count, _count, _count_as_text, _bomb)


# ---------------------------------------------------------------------- files

Read = Callable[[bytes], object]


@dataclass(frozen=True)
class Kind:
    """A kind of file, with samples.

    The function `is_right` compares the result of reading a damaged file with the result of reading the original.
    """

    name: str
    samples: tuple[bytes, ...]
    read: Read
    is_right: Callable[[object, object], bool]


def kinds() -> list[Kind]:
    """Return all kinds of files, each with samples that a store has written."""
    disk = CrashDisk()
    store = open_store(disk, OPTIONS)
    for number in range(4):
        write_rows("root.a.d1", range(number * 20, number * 30 + 40), number, ("x", "y", "t", "b", "f")).run(store)
        write_rows("root.a.d2", range(30), number, ("x", "y", "t")).run(store)
        delete_points(["root.a.*.x"], number * 10, number * 10 + 5).run(store)
        flush().run(store)
    write_batch(("root.a.d1", range(50), 8), ("root.b.c.d1", range(99, 130), 9)).run(store)
    store.close()
    by_suffix: dict[str, list[bytes]] = {}
    for path, data in sorted(disk.files.items()):
        by_suffix.setdefault(path.rpartition("/")[2].rpartition(".")[2], []).append(data)
    found = [
        Kind("tsfile", tuple(by_suffix["tsfile"]), _read_tsfile, _is_anything),
        Kind("resource", tuple(by_suffix["resource"]), _read_resource, _is_anything),
        Kind("manifest", tuple(by_suffix["MANIFEST"]), _read_manifest, operator.eq),
        Kind("schema", tuple(by_suffix["schema"]), _read_schema, operator.eq),
        Kind("node", tuple(by_suffix["json"]), _read_node, operator.eq),
    ]
    for path, data in sorted(disk.files.items()):
        if path.endswith(".log") and data:
            found.append(Kind("log", (data,), partial(_read_log, path.rpartition("/")[2]), _is_first_part))
    return found


def _is_anything(found: object, whole: object) -> bool:
    """Accept any result, since the checksum that detects changes of such a file is in the manifest, not in the file."""
    return True


def _read_tsfile(data: bytes) -> object:
    """Read all chunks, even if some are bad. Raises the error of the last bad chunk."""
    reader = TsFileReader("mutated.tsfile", memoryview(data))
    problem: CorruptFile | UnsupportedFile | None = None
    for device in list(reader.devices()):
        index = reader.device(device)
        for name, series in index.series.items() if index is not None else ():
            for chunk in range(len(series.chunks)):
                try:
                    _read_chunk(reader, index, name, chunk)
                except (CorruptFile, UnsupportedFile) as error:
                    problem = error
    if problem is not None:
        raise problem
    return None


def _read_chunk(reader: TsFileReader, index: DeviceIndex, name: str, chunk: int) -> None:
    pages = reader.pages(index, [name], chunk)
    block, _ = reader.read(index, [name], chunk, 0, len(pages))
    assert len(block.columns[0]) == block.rows == sum(page.count for page in pages)


def _read_resource(data: bytes) -> object:
    return decode_resource("mutated.resource", memoryview(data))


def _read_manifest(data: bytes) -> object:
    return decode_manifest("MANIFEST", data)


def _read_schema(data: bytes) -> object:
    tree, index = load_schema(CrashDisk.of({"schema": data}), "schema")
    return tree.dump(), index


def _read_node(data: bytes) -> object:
    check_node_file(FOLDER, OPTIONS, CrashDisk.of({f"{FOLDER}/node.json": data}))
    return None


def _read_log(name: str, data: bytes) -> list[tuple[int, bytes]]:
    _, records = SegmentedLog.open("log", CrashDisk.of({f"log/{name}": data}), LogOptions())
    return [(record.index, bytes(record.payload)) for record in records]


def _is_first_part(found: object, whole: object) -> bool:
    assert isinstance(found, list)
    assert isinstance(whole, list)
    return found == whole[: len(found)]


# ---------------------------------------------------------------------- attacks


@dataclass
class Survivals:
    """For each kind, the numbers of files that were read and refused; also the slowest and the largest read."""

    files: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    slowest_s: float = 0.0
    largest_bytes: int = 0


def attack(kinds: list[Kind], seed: int, count: int, found: Survivals) -> None:
    """Read `count` damaged files, which are drawn from a seed. Raises NotSurvived."""
    for number in range(seed * count, (seed + 1) * count):
        chance = Random(number)
        kind = kinds[number % len(kinds)]
        sample = chance.choice(kind.samples)
        data = bytearray(sample)
        for _ in range(chance.choice((1, 1, 2))):
            if data:
                chance.choice(MUTATIONS)(chance, data, chance.choice(chance.choice(kinds).samples))
        _try(kind, sample, bytes(data), f"number {number}", found)


def _try(kind: Kind, sample: bytes, data: bytes, name: str, found: Survivals) -> None:
    found.files[kind.name] = found.files.get(kind.name, 0) + 1
    started = time.perf_counter()
    cpu_started = time.process_time()
    try:
        answer = kind.read(data)
    except (CorruptFile, UnsupportedFile):
        found.refused[kind.name] = found.refused.get(kind.name, 0) + 1
    except StorageError as error:
        if error.code not in (_NEWER, 2004):
            raise NotSurvived(f"{kind.name}, {name}: {error!r}") from error
    except Exception as error:
        raise NotSurvived(f"{kind.name}, {name}: {error!r}") from error
    else:
        if data != sample and not kind.is_right(answer, kind.read(sample)):
            raise NotSurvived(f"{kind.name}, {name}: {answer!r} is not what was written")
    seconds = min(time.perf_counter() - started, time.process_time() - cpu_started)
    found.slowest_s = max(found.slowest_s, seconds)
    if seconds > SECONDS_MAX:
        raise NotSurvived(f"{kind.name}, {name}: took {seconds:.2f} s")


def attack_watching_memory(kinds: list[Kind], seed: int, count: int, found: Survivals) -> None:
    """Do the same as `attack`, and also measure the peak of allocated memory, which is slower."""
    tracemalloc.start()
    try:
        for number in range(count):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            attack(kinds, seed * count + number, 1, found)
            used = tracemalloc.get_traced_memory()[1] - before
            found.largest_bytes = max(found.largest_bytes, used)
            if used > MEMORY_BYTES_MAX:
                raise NotSurvived(f"number {seed * count + number}: {used >> 20} MiB")
    finally:
        tracemalloc.stop()


def see_damage() -> int:
    """Damage each byte of a log in turn; the log's records were fsynced one by one.

    Raises NotSurvived if a byte before the last record is damaged, and the damage is not reported.
    """
    disk = CrashDisk()
    log, _ = SegmentedLog.open("log", disk, LogOptions())
    for size in (0, 3, 40, 200, 8):
        log.wait(log.append(0, 1, [bytes(range(size))]))
    log.close()
    ((path, data),) = disk.files.items()
    name = path.rpartition("/")[2]
    whole = _read_log(name, data)
    for place in range(len(data)):
        for bad in (data[place] ^ 1, 255 - data[place], 0):
            changed = data[:place] + bytes([bad]) + data[place + 1 :]
            try:
                found = _read_log(name, changed)
            except CorruptFile:
                continue
            if len(found) < len(whole) - 1 or found != whole[: len(found)]:
                raise NotSurvived(f"{path}, byte {place} is {bad}: {len(whole) - len(found)} records are gone unseen")
    return 3 * len(data)


# ---------------------------------------------------------------------- whole folders


def attack_folder(files: Mapping[str, bytes], number: int, found: Survivals) -> None:
    """Check that a store reads a folder with one bad file, or reports that file."""
    chance = Random(number)
    path = chance.choice(sorted(files))
    data = bytearray(files[path])
    if not data:
        return
    chance.choice(MUTATIONS)(chance, data, chance.choice(list(files.values())))
    disk = CrashDisk.of({**files, path: bytes(data)})
    kind = f"folder with a bad {path.rpartition('/')[2].rpartition('.')[2]}"
    found.files[kind] = found.files.get(kind, 0) + 1
    try:
        store = open_store(disk, OPTIONS)
    except StorageError:
        found.refused[kind] = found.refused.get(kind, 0) + 1
        return
    try:
        read_store(store)
    except (CorruptFile, UnsupportedFile):
        found.refused[kind] = found.refused.get(kind, 0) + 1
    finally:
        store.close()


def folder() -> dict[str, bytes]:
    """Return a store's folder with all kinds of files."""
    disk = CrashDisk()
    store = open_store(disk, OPTIONS)
    for number in range(3):
        write_rows("root.a.d1", range(number * 20, number * 30 + 40), number, ("x", "y", "t")).run(store)
        delete_points(["root.a.*.x"], number * 10, number * 10 + 5).run(store)
        flush().run(store)
    write_batch(("root.a.d1", range(50), 8), ("root.b.c.d1", range(99, 130), 9)).run(store)
    store.close()
    return disk.files
