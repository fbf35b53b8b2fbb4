"""Each release's data folder and backup open in this version, with all data that `release_fixture` wrote."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from system.release_fixture import (
    FIXTURES,
    PARTITION_MS,
    ROWS,
    TYPES,
    encoded_series,
    encoded_value,
    row_of_types,
)

import saros
from saros_server.process.version import RELEASE
from saros_shell.main import main
from saros_storage.folder.node_file import FOLDER_FORMAT

RELEASES = sorted(path.name.removesuffix(".tar.xz") for path in FIXTURES.glob("*.tar.xz"))
#: The points of `root.plant.pump`, as (time, temperature, count): in the first backup, the second one, and the folder.
FIRST = [(1, 1.5, 1), (2, 2.5, 2), (3, 33.5, 3), (PARTITION_MS, 9.5, 9)]
SECOND = [*FIRST[:3], (4, 4.5, None), FIRST[3]]
NEWEST = [(1, 11.5, 1), (2, None, 2), (3, 33.5, 3), (4, 4.5, None), (5, 5.5, None), (PARTITION_MS, 9.5, 9)]

#: The timeout of a statement; it is long, since the first statements may compile kernels on a busy machine.
PATIENCE_S = 600

Rows = list[tuple[object, ...]]


def extract(version: str, place: Path) -> Path:
    with tarfile.open(FIXTURES / f"{version}.tar.xz") as archive:
        archive.extractall(place, filter="data")
    return place


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the extracted fixture of a release, which the tests of this module share."""
    return extract(request.param, tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def db(release: Path) -> Iterator[saros.Connection]:
    """Yield a connection to the folder."""
    with saros.connect(release / "folder", timestamps="epoch", timeout=PATIENCE_S) as connection:
        yield connection


def rows(db: saros.Connection, statement: str) -> Rows:
    return db.execute(statement).fetchall()


def shown(db: saros.Connection, statement: str, *columns: str) -> Rows:
    cursor = db.execute(statement)
    names = [name for name, *_ in cursor.description or ()]
    return sorted(tuple(row[names.index(column)] for column in columns) for row in cursor.fetchall())


def test_this_release_has_a_fixture() -> None:
    assert RELEASE in RELEASES, "run tests/system/release_fixture.py on the commit of the release"


# ------------------------------------------------------------------------------------------------ points


@pytest.mark.parametrize("device", ["plain", "aligned"])
def test_values_of_all_types_are_as_they_were(db: saros.Connection, device: str) -> None:
    columns = ", ".join(f"v_{name}" for name in TYPES)
    expected = [[i, *row_of_types(i)] for i in range(1, ROWS + 1)]
    if device == "plain":
        for i in (5, 6, 7, 8, 12):
            expected[i - 1][1 + TYPES.index("int64")] = None
        expected[2][1 + TYPES.index("double")] = 33.25
    assert [tuple(row) for row in expected] == rows(db, f"select {columns} from root.plant.{device}")


def test_values_of_all_encodings_and_compressors_are_as_they_were(db: saros.Connection) -> None:
    series = encoded_series()
    columns = ", ".join(name for name, *_ in series)
    expected = [(i, *(encoded_value(type_, i) for _, type_, _, _ in series)) for i in range(1, ROWS + 1)]
    assert expected == rows(db, f"select {columns} from root.codecs.d")


def test_late_merged_deleted_and_unflushed_points_are_as_they_were(db: saros.Connection) -> None:
    assert NEWEST == rows(db, "select heat, count from root.plant.pump")
    assert [(PARTITION_MS, "root.plant.pump.heat", "9.5", "DOUBLE")] == rows(
        db, "select last heat from root.plant.pump"
    )


def test_dropped_and_expired_points_stay_away(db: saros.Connection) -> None:
    assert [] == shown(db, "show timeseries root.gone.**", "Timeseries")
    assert [] == shown(db, "show timeseries root.plant.dropped.*", "Timeseries")
    assert [] == rows(db, "select x from root.plant.short.d")


def test_devices_of_a_template_have_their_values(db: saros.Connection) -> None:
    assert [("m1", 1, 230.5, 2.5), ("m2", 1, 231.5, None)] == [
        (str(device).removeprefix("root.meters.hall."), time, volts, amps)
        for time, device, volts, amps in rows(db, "select volts, amps from root.meters.hall.* align by device")
    ]


def test_views_show_their_source(db: saros.Connection) -> None:
    expected = [(time, heat, None if heat is None else heat * 1.8 + 32) for time, heat, _ in NEWEST if heat is not None]
    assert expected == rows(db, "select temperature, fahrenheit from root.view")


# ------------------------------------------------------------------------------------------------ schema and users


def test_the_schema_is_as_it_was(db: saros.Connection) -> None:
    databases = ["codecs", "meters", "plant", "view"]
    assert [(f"root.{name}",) for name in databases] == shown(db, "show databases", "Database")
    assert [("root.plant.pump.count", "INT64", None), ("root.plant.pump.heat", "DOUBLE", "warmth")] == shown(
        db, "show timeseries root.plant.pump.*", "Timeseries", "DataType", "Alias"
    )
    assert [('{"unit":"C"}', '{"note":"new"}')] == shown(
        db, "show timeseries root.plant.pump.heat", "Tags", "Attributes"
    )
    assert sorted((f"root.codecs.d.{name}", encoding, by) for name, _, encoding, by in encoded_series()) == shown(
        db, "show timeseries root.codecs.**", "Timeseries", "Encoding", "Compression"
    )
    devices = [("aligned", "true"), ("plain", "false"), ("pump", "false"), ("short.d", "false")]
    assert [(f"root.plant.{name}", aligned) for name, aligned in devices] == shown(
        db, "show devices root.plant.**", "Device", "IsAligned"
    )


def test_templates_views_ttl_and_continuous_queries_are_as_they_were(db: saros.Connection) -> None:
    assert [("meter",)] == shown(db, "show device templates", "TemplateName")
    assert [("root.meters.hall",)] == shown(db, "show paths set device template meter", "Paths")
    views = [("root.view.fahrenheit",), ("root.view.temperature",)]
    assert views == shown(db, "show view root.view.**", "Timeseries")
    assert [("root.**", "INF"), ("root.plant.short.**", "3600000")] == shown(db, "show all ttl", "Device", "TTL(ms)")
    assert [("hourly",)] == shown(db, "show continuous queries", "CQId")


def test_users_and_their_privileges_are_as_they_were(db: saros.Connection) -> None:
    assert [("ann",)] == shown(db, "list user", "User")
    assert [("operators",)] == shown(db, "list role of user ann", "Role")
    assert [("root.plant.**", "READ_DATA")] == shown(db, "list privileges of user ann", "Path", "Privileges")


@pytest.mark.slow
@pytest.mark.parametrize("version", RELEASES)
def test_an_old_folder_takes_writes_and_merges(version: str, tmp_path: Path) -> None:
    folder = extract(version, tmp_path) / "folder"
    with saros.connect(folder) as db:
        db.execute("insert into root.plant.pump(time, heat) values (6, 6.5)")
        db.execute("flush")
        db.execute("full merge")
    assert 0 == main(["verify", "--quiet", str(folder)])
    with saros.connect(folder, timestamps="epoch") as db:
        assert [*NEWEST[:5], (6, 6.5, None), NEWEST[5]] == rows(db, "select heat, count from root.plant.pump")


# ------------------------------------------------------------------------------------------------ backups


def test_the_backups_are_whole(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["backup", "verify", "--quiet", str(release / "backups")])


@pytest.mark.parametrize(("number", "expected"), [(1, FIRST), (2, SECOND)])
def test_a_backup_is_restored(
    release: Path, tmp_path: Path, number: int, expected: Rows, capsys: pytest.CaptureFixture[str]
) -> None:
    backups, folder = str(release / "backups"), tmp_path / "restored"
    main(["backup", "list", backups])
    last_entry = capsys.readouterr().out.splitlines()[number].split()[-1]
    assert 0 == main(["restore", "--quiet", "--from", backups, "--data", str(folder), "--at", last_entry])
    with saros.connect(folder, timestamps="epoch") as db:
        assert expected == rows(db, "select heat, count from root.plant.pump")
        assert [("meter",)] == shown(db, "show device templates", "TemplateName")


# ------------------------------------------------------------------------------------------------ newer formats


def contents(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files, without the zeros at the end of logs, which are truncated at a start."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: data.rstrip(b"\0") if name.startswith("log/") else data for name, data in files.items()}


def raise_format(file: Path) -> None:
    """Change a file's format number to a higher one than this version writes."""
    if file.suffix == ".json":
        words = json.loads(file.read_bytes())
        file.write_text(json.dumps(words | {"format": FOLDER_FORMAT + 1}))
    else:
        file.write_bytes(re.sub(rb"\A(saros-\w+) \d+", rb"\1 99", file.read_bytes()))


@pytest.mark.parametrize("name", ["node.json", "meta/schema", "meta/users", "groups/0/root.plant/0/MANIFEST"])
def test_a_folder_of_a_newer_version_is_refused_and_stays_as_it_is(name: str, tmp_path: Path) -> None:
    folder = extract(RELEASES[-1], tmp_path) / "folder"
    saros.connect(folder).close()  # converts the folder to this version's format
    raise_format(folder / name)
    (folder / "LOCK").unlink()
    before = contents(folder)
    for options in ({}, {"read_only": True}):
        with pytest.raises(saros.OperationalError, match=r"newer Saros|this Saros reads up to \d+") as caught:
            saros.connect(folder, **options)
        assert 2015 == caught.value.code
        assert str(folder) in str(caught.value)
    after = contents(folder)
    after.pop("LOCK", None)  # the refused attempt has created this file
    assert before == after


def test_commands_refuse_a_folder_of_a_newer_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = extract(RELEASES[-1], tmp_path) / "folder"
    raise_format(folder / "node.json")
    data, backups = str(folder), str(tmp_path / "new")
    for words in (
        ["start", "--foreground", "--data", data, "--port", "0", "--http-port", "0"],
        ["shell", data, "-e", "flush"],
        ["verify", "--quiet", data],
        ["backup", "--quiet", "--data", data, "--to", backups],
    ):
        assert 0 != main(words)
        assert f"has format {FOLDER_FORMAT + 1}; this Saros reads up to {FOLDER_FORMAT}" in "".join(capsys.readouterr())


def test_a_backup_of_a_newer_version_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    backups = extract(RELEASES[-1], tmp_path) / "backups"
    for catalog in backups.rglob("*"):
        if catalog.is_file() and catalog.read_bytes().startswith(b"saros-backup "):
            raise_format(catalog)
    before = contents(backups)
    for words in (
        ["restore", "--from", str(backups), "--data", str(tmp_path / "new")],
        ["backup", "list", str(backups)],
    ):
        assert 0 != main(words)
        assert "was written by a newer Saros" in "".join(capsys.readouterr())
    assert before == contents(backups)
    assert not (tmp_path / "new").exists()
