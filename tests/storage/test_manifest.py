"""A partition's manifest is read back as it was written. A damaged or foreign manifest is refused."""

from __future__ import annotations

import json
import zlib

import pytest

from saros_storage.base.errors import CorruptFile, StorageError
from saros_storage.folder.manifest import FileEntry, Manifest, decode_manifest, encode_manifest
from saros_storage.scan.reading import TimeRange
from saros_storage.scan.snapshot import Rank, Tombstone

FILES = tuple(
    FileEntry(f"{number}.tsfile", number != 2, Rank(1, number), 10 * number, 7 + number, 70 + number)
    for number in (1, 2, 3)
)
TOMBSTONE = Tombstone("root.ä.**", TimeRange(-5, 9), Rank(2, 8))
MANIFEST = Manifest("root.ä", 4, 90, FILES, (TOMBSTONE,), (("0.tsfile", "a flipped bit"),), 6, 5)

FIRST_LINE = encode_manifest(MANIFEST).partition(b"{")[0]


def framed(body: bytes, version: int = 1) -> bytes:
    return b"saros-manifest %d %08x %d\n" % (version, zlib.crc32(body), len(body)) + body


def test_a_manifest_comes_back():
    assert MANIFEST == decode_manifest("MANIFEST", encode_manifest(MANIFEST))


def test_the_form_is_the_one_that_other_versions_read():
    body = encode_manifest(MANIFEST).partition(b"\n")[2]
    assert framed(body) == encode_manifest(MANIFEST)
    assert {
        "database": "root.ä",
        "created": 4,
        "flushed": 90,
        "files": [
            ["1.tsfile", True, 1, 1, 10, 8, 71],
            ["2.tsfile", False, 1, 2, 20, 9, 72],
            ["3.tsfile", True, 1, 3, 30, 10, 73],
        ],
        "tombstones": [["root.ä.**", -5, 9, 2, 8]],
        "set_aside": [["0.tsfile", "a flipped bit"]],
        "generation": 6,
        "arrived": 5,
    } == json.loads(body)
    assert "ä".encode() in body


def test_it_can_be_read_by_people():
    assert b'\n "created": 4,\n' in encode_manifest(MANIFEST)


def test_a_newer_format_is_told_from_damage():
    with pytest.raises(StorageError, match=r"x/MANIFEST was written by a newer Saros \(manifest format 2\)") as caught:
        decode_manifest("x/MANIFEST", framed(b"{}", version=2))
    assert 2015 == caught.value.code
    assert not isinstance(caught.value, CorruptFile)


@pytest.mark.parametrize(
    ("data", "position", "reason"),
    [
        (b"", 0, "not a manifest"),
        (b"saros-manifest 1 0 2\n{}", 0, "not a manifest"),
        (encode_manifest(MANIFEST)[:-1], len(FIRST_LINE), "checksum mismatch"),
        (encode_manifest(MANIFEST) + b" ", len(FIRST_LINE), "checksum mismatch"),
        (encode_manifest(MANIFEST).replace(b'"created": 4', b'"created": 5'), len(FIRST_LINE), "checksum mismatch"),
        (framed(b"{}"), 28, "not a manifest: 'database'"),
        (framed(b"[]"), 28, "not a manifest: list indices"),
        (framed(b"{"), 28, "not a manifest: Expecting"),
    ],
    ids=["nothing", "another first line", "shorter", "longer", "another digit", "no words", "a list", "no JSON"],
)
def test_damage_is_refused_where_it_is(data, position, reason):
    with pytest.raises(CorruptFile, match=reason) as caught:
        decode_manifest("x/MANIFEST", data)
    assert ("x/MANIFEST", position) == (caught.value.file, caught.value.offset)


def test_the_highest_version_is_that_of_a_file_or_of_a_tombstone():
    assert 8 == MANIFEST.version_max
    assert 3 == Manifest("root.a", 1, files=FILES).version_max
    assert 0 == Manifest("root.a", 1).version_max


def test_files_are_in_order_of_rank_and_the_sequence_file_of_a_rank_is_first():
    late = FileEntry("late", False, Rank(1, 2), 1, 1, 1)
    early = FileEntry("early", True, Rank(1, 2), 1, 1, 1)
    older = FileEntry("older", True, Rank(0, 9), 1, 1, 1)
    found = Manifest("root.a", 1, 7, FILES[2:]).with_files((late, early, older), 12)
    assert ["older", "early", "late", "3.tsfile"] == [file.name for file in found.files]


def test_a_manifest_never_needs_more_of_the_log_than_before():
    assert 12 == Manifest("root.a", 1, 7).with_files((), 12).flushed
    assert 12 == Manifest("root.a", 1, 12).with_files((), 7).flushed


def test_merged_files_take_the_place_of_the_others():
    merged = FileEntry("1.tsfile", False, Rank(1, 2), 30, 1, 1)
    found = MANIFEST.with_merged([("1.tsfile", True), ("2.tsfile", False)], (merged,), ())
    assert ((merged, FILES[2]), (), 90) == (found.files, found.tombstones, found.flushed)


def test_the_namesake_of_a_file_in_the_other_folder_stays():
    same = FileEntry("1.tsfile", False, Rank(1, 4), 30, 1, 1)
    both = MANIFEST.with_files((same,), 90)
    assert (FILES[1], FILES[2], same) == both.with_merged([("1.tsfile", True)], (), ()).files
    found = both.without_file("1.tsfile", sequence=True, reason="its index is damaged")
    assert (FILES[1], FILES[2], same) == found.files
    assert (("0.tsfile", "a flipped bit"), ("1.tsfile", "its index is damaged")) == found.set_aside
