"""Files that clients upload: chunks, checksums, the end of jobs, and permissions."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from caseless_disk import CaselessDisk
from manual_clock import ManualClock
from server.secured import SECOND

import saros
from saros.base.target import parse_target
from saros.transport.exchange import CLOSED, CallFailed, Fate
from saros.transport.uploads import Uploads as Sender
from saros_server.node.uploads import UploadRefused, Uploads
from saros_server.server import Server
from saros_storage.io.disk import LocalDisk

DATA = bytes(range(256)) * 40


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def uploads(tmp_path: Path, clock: ManualClock) -> Uploads:
    return Uploads(str(tmp_path), LocalDisk(), clock)


def send(uploads: Uploads, job: str, name: str, data: bytes = DATA, size: int = 1_000) -> None:
    for offset in range(0, len(data), size):
        part = data[offset : offset + size]
        assert offset + len(part) == uploads.receive(job, name, offset, zlib.crc32(part), part)


def test_chunks_make_the_file_that_was_sent(uploads: Uploads) -> None:
    send(uploads, "job", "a")
    path = uploads.finish("job", "a", len(DATA), zlib.crc32(DATA))
    assert DATA == Path(path).read_bytes()


def test_jobs_and_files_whose_names_differ_only_in_case_have_files_on_every_system(
    tmp_path: Path, clock: ManualClock
) -> None:
    uploads = Uploads(str(tmp_path), CaselessDisk(), clock)
    sent = {(job, name): f"{job} {name}".encode() * 300 for job in ("job", "JOB") for name in ("a", "A", "A" * 100)}
    for offset in range(0, 40_000, 500):  # chunks of all files alternate
        for (job, name), data in sent.items():
            if part := data[offset : offset + 500]:
                uploads.receive(job, name, offset, zlib.crc32(part), part)
    for (job, name), data in sent.items():
        path = uploads.finish(job, name, len(data), zlib.crc32(data))
        assert data == Path(path).read_bytes()
    uploads.discard("job")
    assert sent["JOB", "a"] == Path(uploads.received("JOB", "a")[0]).read_bytes()


def test_a_file_can_be_found_while_it_comes(uploads: Uploads) -> None:
    with pytest.raises(UploadRefused, match="nothing of a of job job was received"):
        uploads.received("job", "a")
    send(uploads, "job", "a", DATA[:2_000])
    path, size = uploads.received("job", "a")
    assert (2_000, DATA[:2_000]) == (size, Path(path).read_bytes())
    uploads.discard("job")
    with pytest.raises(UploadRefused, match="has ended"):
        uploads.received("job", "a")


def test_chunks_that_come_twice_or_too_early_change_nothing(uploads: Uploads) -> None:
    send(uploads, "job", "a", DATA[:2_000])
    again = DATA[1_000:2_000]
    assert 2_000 == uploads.receive("job", "a", 1_000, zlib.crc32(again), again)
    early = DATA[5_000:6_000]
    assert 2_000 == uploads.receive("job", "a", 5_000, zlib.crc32(early), early)
    rest = DATA[2_000:]
    assert len(DATA) == uploads.receive("job", "a", 2_000, zlib.crc32(rest), rest)
    assert DATA == Path(uploads.finish("job", "a", len(DATA), zlib.crc32(DATA))).read_bytes()


def test_a_damaged_chunk_and_a_file_that_lacks_something_are_refused(uploads: Uploads) -> None:
    with pytest.raises(UploadRefused, match="another checksum"):
        uploads.receive("job", "a", 0, zlib.crc32(DATA) ^ 1, DATA)
    send(uploads, "job", "a", DATA[:-1])
    with pytest.raises(UploadRefused, match="send it again"):
        uploads.finish("job", "a", len(DATA), zlib.crc32(DATA))
    send(uploads, "job", "a")
    uploads.finish("job", "a", len(DATA), zlib.crc32(DATA))


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc/passwd", "a" * 101, "a.tsfile", "a\n"])
def test_names_that_could_be_other_paths_are_refused(uploads: Uploads, name: str) -> None:
    for job, file in (("job", name), (name, "file")):
        with pytest.raises(UploadRefused, match="is not a valid name"):
            uploads.receive(job, file, 0, 0, b"")
    with pytest.raises(UploadRefused, match="is not a valid name"):
        uploads.discard(name)


def test_a_job_that_is_over_leaves_nothing_and_takes_nothing(uploads: Uploads) -> None:
    send(uploads, "job", "a")
    send(uploads, "other", "a")
    uploads.discard("job")
    uploads.discard("job")
    with pytest.raises(UploadRefused, match="job job has ended"):
        uploads.receive("job", "b", 0, zlib.crc32(DATA), DATA)
    assert ["other"] == [path.name for path in Path(uploads.folder).iterdir()]


def test_what_nobody_ends_goes_after_an_hour_or_with_the_process(
    uploads: Uploads, clock: ManualClock, tmp_path: Path
) -> None:
    send(uploads, "dead", "a")
    clock.ns += 3_599 * SECOND
    send(uploads, "new", "a")
    assert {"dead", "new"} == {path.name for path in Path(uploads.folder).iterdir()}
    clock.ns += 2 * SECOND
    send(uploads, "newer", "a")
    assert {"new", "newer"} == {path.name for path in Path(uploads.folder).iterdir()}
    Uploads(str(tmp_path), LocalDisk(), clock)
    assert not Path(uploads.folder).exists()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(str(tmp_path / "data"), "127.0.0.1", 0)
    server.start()
    yield server
    server.stop()


def test_a_lost_answer_does_not_lose_a_file(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saros.transport.uploads._CHUNK_BYTES", 1_000)
    monkeypatch.setattr("saros.transport.uploads._PAUSE_SECONDS", 0.0)
    file = tmp_path / "file"
    file.write_bytes(DATA)
    sender = Sender(parse_target(f"saros://{server.address}"))
    call = sender._session.call
    calls = []

    def losing(*words: object) -> object:
        """Call the server, but discard every third answer as if it were lost."""
        answer = call(*words)  # type: ignore[arg-type]
        calls.append(answer)
        if len(calls) % 3 == 0:
            raise CallFailed(Fate.LOST, CLOSED)
        return answer

    monkeypatch.setattr(sender._session, "call", losing)
    path = sender.send("job", "a", str(file))
    assert len(calls) > 11
    assert DATA == Path(path).read_bytes()
    sender.discard("job")
    assert not Path(path).exists()
    monkeypatch.undo()
    sender.close()


def test_a_client_loads_what_was_uploaded_and_nothing_else_of_the_data_folder(server: Server, tmp_path: Path) -> None:
    with saros.connect(f"saros://{server.address}") as connection:
        with pytest.raises(saros.ProgrammingError, match="outside the folders"):
            connection.execute(f"load '{tmp_path / 'data' / 'server.json'}'")
        with pytest.raises(saros.ProgrammingError, match="outside the folders"):
            connection.execute(f"load '{tmp_path / 'data' / 'uploads' / '..' / 'server.json'}'")
