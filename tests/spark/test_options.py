"""Options parsed from text: accepted values, refused values, and the messages about them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from saros_spark.base import options as faces
from saros_spark.base.connecting import address_of
from saros_spark.base.errors import SourceError
from saros_spark.base.options import scan_options, split_list, stream_options, with_session, write_options

URL = {"url": "saros://h"}


def test_options_of_a_scan_are_typed() -> None:
    made = scan_options(
        {**URL, "PATH": "root.a.*, root.b", "columns": "x,`p, q`", "starttime": "5", "pointsPerPartition": "7"}
    )
    assert ("root.a.*", "root.b") == made.devices
    assert ("x", "`p, q`") == made.columns
    assert ("5", None) == (made.start, made.end)
    assert 7 == made.points_per_partition


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"path": "root.a"}, "option url is missing"),
        ({**URL}, "nothing to read is given"),
        ({**URL, "sql": "drop database root.a"}, "option sql takes a query that returns rows and writes none"),
        ({**URL, "sql": "select x into root.b(x) from root.a"}, "this was not run: select x into root.b"),
        ({**URL, "path": "root.a", "colums": "x"}, "no option colums: did you mean columns?"),
        ({**URL, "path": "root.a", "endtme": "5"}, "did you mean endTime?"),
        ({**URL, "path": "root.a", "devices": "root.b"}, "devices and path both name the devices"),
        ({**URL, "path": "root.a", "layout": "wide"}, "layout must be one of by_device, by_time, narrow, not 'wide'"),
        ({**URL, "path": "root.a", "maxPartitions": "0"}, "maxPartitions must be at least 1, not 0"),
        ({**URL, "path": "root.a", "maxPartitions": "many"}, "maxPartitions must be a number, not 'many'"),
        ({**URL, "sql": "select 1", "where": "x > 1"}, "where cannot be given with it"),
        (
            {**URL, "sql": "select 1", "path": "root.a"},
            r"load\(\.\.\.\) cannot be given with it; write load\(\) without",
        ),
        ({**URL, "path": "root.a", "startTime": "yesterday"}, "option startTime must be a date .* not 'yesterday'"),
        ({**URL, "path": "root.a", "endTime": "5m"}, "option endTime must be a date .* not '5m'"),
        ({**URL, "path": "root.a", "aggregate": "avg(x)", "interval": "often"}, "option interval must be a duration"),
        ({**URL, "path": "root.a", "interval": "5m"}, "pass aggregate, too"),
        ({**URL, "path": "root.a", "aggregate": "avg(x)", "layout": "narrow"}, "omit columns and layout"),
        ({**URL, "path": "root.a", "where": "t >"}, r"option where, line 1, column 4: .*\nt >\n   \^"),
        ({**URL, "path": "root.a", "where": "t > 1) or (u > 1"}, r"option where, line 1, column 6: unexpected '\)'"),
        ({**URL, "path": "root.a", "password": "a", "passwordFile": "b"}, "not both"),
        ({**URL, "path": "root.a", "passwordFile": "/nowhere/at/all"}, "cannot be read"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(SourceError, match=said.replace("?", r"\?")):
        scan_options(options)


def test_options_of_other_directions_are_not_taken() -> None:
    with pytest.raises(SourceError, match="no option batchrows"):
        scan_options({**URL, "path": "root.a", "batchRows": "5"})
    with pytest.raises(SourceError, match="no option where"):
        write_options({**URL, "where": "x"})
    with pytest.raises(SourceError, match="aggregate is for batch reads"):
        stream_options({**URL, "path": "root.a", "aggregate": "avg(x)"})


def test_an_option_url_replaces_all_options_of_the_session() -> None:
    session = {"url": "saros://a", "user": "u", "password": "secret"}
    assert {**session, "path": "root.a"} == with_session({"path": "root.a"}, session)
    assert {"url": "saros://b"} == with_session({"url": "saros://b"}, session)


def test_no_repr_shows_a_password(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("correct horse\n")
    made = scan_options({**URL, "path": "root.a", "passwordFile": str(tmp_path / "password")})
    assert "correct horse" == made.connecting.password
    assert "correct" not in repr(made)


def test_words_end_at_commas_outside_quotes_and_brackets() -> None:
    assert ("avg(x)", "f(a, b)", "`,`") == split_list("avg(x), f(a, b), `,`,")


def test_a_folder_that_nobody_serves_says_how_to_serve_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="saros start --data"):
        address_of(str(tmp_path))


#: Options that Spark itself passes to a source: a stream's name and checkpoint, and arguments of `load` and `save`.
SPARKS = {"checkpointLocation", "path", "paths", "queryName"}
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "spark.md"
#: The options described by each section of the document, without options of earlier sections ("as above").
SECTIONS = {
    "What to read": [faces.READ],
    "Writing": [faces.WRITE],
    "Streams": [faces.STREAM, faces.STREAM_WRITE],
    "Folders of TsFiles": [faces.FILES, faces.FILES_WRITE],
}


def described(section: str) -> set[str]:
    """Return the options in the first column of the section's tables of options."""
    text = DOCUMENT.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    tables = re.findall(r"\| option \| meaning \|\n\|[-| ]+\|\n((?:\|.*\n)+)", text)
    cells = [line.split("|")[1] for table in tables for line in table.splitlines()]
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_option_is_documented_and_nothing_else(section: str) -> None:
    known = {name for face in SECTIONS[section] for name in face} - SPARKS
    sections = list(SECTIONS)
    before = set().union(*(described(name) for name in sections[: sections.index(section)]))

    assert set() == known - described(section) - before
    assert set() == described(section) - known
