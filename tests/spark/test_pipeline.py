"""Pipelines: the permitted contents of a file, and the steps import, rollup, export and report, run on Spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import saros
from saros_spark.base.errors import SourceError
from saros_spark.pipeline import command, load, run
from saros_spark.pipeline.definition import Export, Import, Rollup, parse

pytestmark = pytest.mark.filterwarnings("ignore")
ROOT = Path(__file__).parents[2]
SKAB = ROOT.parent / "shared" / "data" / "skab"


def test_the_example_is_a_pipeline() -> None:
    made = load(ROOT / "examples" / "skab.yaml")
    assert [Import, Rollup] == [type(step) for step in made.steps[:2]]
    assert str(ROOT / "examples" / "skab-out" / "data") == made.path(made.database)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps: []", "the file has no database"),
        ("database: d\nsteps: []", "steps must be a list of steps"),
        ("database: d\nstep: []", "the file has no key step: did you mean steps?"),
        ("database: d\nsteps: [{imprt: {}}]", "line 2: steps[0] has no key imprt: did you mean import?"),
        ("database: d\nsteps: [{export: {devices: root.a}}]", "steps[0].export has no to"),
        ("database: d\nsteps: [{import: {files: x.csv}}]", "steps[0].import.files must be a list, not 'x.csv'"),
        ("database: d\nsteps: [{import: {files: [a], time: {zon: UTC}}}]", "time has no key zon: did you mean zone?"),
        (
            "database: d\nsteps: [{export: {devices: a, to: b, partition: week}}]",
            "must be one of year, month, day, none, not 'week'",
        ),
        ("database: d\nsteps: [{report: {devices: a, to: b, outlier: x}}]", "outlier must be a number, not 'x'"),
        (
            (
                "database: d\nsteps:\n  - export: {devices: a, to: b}\n"
                "  - import:\n      files: [a]\n      time:\n        zon: UTC"
            ),
            "line 7: steps[1].import.time has no key zon: did you mean zone?",
        ),
        (
            "database: d\nsteps:\n  - import:\n      files:\n        - a\n        - {b: c}",
            "line 6: steps[0].import.files[1] must be a text, not {'b': 'c'}",
        ),
        ("database: {a: b", "not valid YAML"),
        ("# nothing yet", "the file is empty; it needs a database and steps"),
        (
            "database: d\nsteps: [{rollup: {devices: a, interval: 1minute, into: b}}]",
            "steps[0].rollup.interval must be a duration such as 1m, 1h or 1d, not '1minute'",
        ),
    ],
)
def test_what_a_file_may_not_say_is_named(text: str, said: str) -> None:
    with pytest.raises(SourceError, match=re.escape(said)):
        parse(text, Path())


def test_scalars_are_of_the_types_that_keys_have() -> None:
    """A date, a column called `no`, digits and numbers get the types of their keys."""
    made = parse(
        "database: d\nuser: 007\nspark: {conf: {spark.sql.shuffle.partitions: 8}}\nsteps:\n"
        "  - import: {files: [a], rejected: null, rejected_max: 1e-2}\n"
        "  - export: {devices: root.a, to: out, start: 2024-01-01, columns: [no, 5]}\n",
        Path(),
    )
    imported, exported = made.steps
    assert isinstance(imported, Import)
    assert isinstance(exported, Export)
    assert ("007", {"spark.sql.shuffle.partitions": "8"}) == (made.user, made.spark.conf)
    assert (None, 0.01) == (imported.rejected, imported.rejected_max)
    assert ("2024-01-01", ["no", "5"]) == (exported.start, exported.columns)


def test_the_command_checks_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == command.pipeline(["check", str(ROOT / "examples" / "skab.yaml")])
    assert "4 steps" in capsys.readouterr().out
    (tmp_path / "bad.yaml").write_text("steps: 5")
    assert 2 == command.pipeline(["run", str(tmp_path / "bad.yaml")])
    assert "saros pipeline: line 1: the file has no database" in capsys.readouterr().err


def test_a_pipeline_imports_rolls_up_exports_and_reports(spark: Any, url: str, tmp_path: Path) -> None:
    lines = [f"2024-01-01 00:{n // 60:02}:{n % 60:02},{n % 5},ok" for n in range(300) if not 100 <= n < 120]
    lines[7] = "2024-01-01 00:00:07,1000,ok"  # an outlier
    bad = ["no time,1,ok", "2024-01-01 01:00:00,many,ok", "2024-01-01 01:00:01,-1,ok"]
    again = ["2024-01-01 00:00:00,4,again"]
    text = "\n".join(["when,my value,state", *lines, *bad, *again])
    (tmp_path / "a-1.csv").write_text(text)
    (tmp_path / "job.yaml").write_text(
        f"""
database: {url}
steps:
  - import:
      files: ["*.csv"]
      device: root.pipe.{{file}}
      time: {{column: when, format: "yyyy-MM-dd HH:mm:ss", zone: Europe/Berlin}}
      columns: {{my value: v, state: s}}
      types: {{state: string}}
      rules: [{{name: v is negative, keep: v >= 0}}]
      rejected: rejected
      rejected_max: 0.1
  - rollup: {{devices: root.pipe.*, interval: 1m, into: "root.minutes.{{device}}", functions: [sum, count]}}
  - export: {{devices: root.pipe.*, to: out}}
  - report: {{devices: root.pipe.*, to: report.html, title: "<plant>"}}
"""
    )
    said = [result.said for result in run(load(tmp_path / "job.yaml"), spark)]
    assert (
        "280 rows, 1 duplicates, 3 rejected: 1 x my value is not a valid double; 1 x v is negative;"
        " 1 x when is not a time" == said[0]
    )
    with saros.connect(url) as connection:
        first = connection.execute("select v, s from root.pipe.`a-1` limit 1").fetchone()
        assert first is not None
        assert ("2023-12-31T23:00:00+00:00", 4.0, "again") == (first[0].isoformat(), *first[1:])
        minutes = connection.execute("select v_sum, v_count from root.minutes.`a-1`").fetchall()
        assert [60, 40, 60, 60, 60] == [row[2] for row in minutes]
        assert sum(n % 5 for n in range(60, 100)) == minutes[1][1]
    rejected = {row["reason"]: row for row in spark.read.json(str(tmp_path / "rejected")).collect()}
    assert 3 == len(rejected)
    assert "many" in rejected["my value is not a valid double"]["row"]
    assert -1.0 == rejected["v is negative"]["v"]
    out = spark.read.parquet(str(tmp_path / "out"))
    assert 280 == out.count()
    assert {"time", "device", "s", "v", "day"} == set(out.columns)
    report = (tmp_path / "report.html").read_text()
    assert "&lt;plant&gt;" in report
    assert "1 series: 1 gaps (0 long, 1 medium, 0 short), 1 outliers" in said[3]
    assert "<dt>missing</dt><dd>20</dd>" in report
    assert '<a href="rejected">rejected rows</a>' in report
    assert '<a href="out">Parquet</a>' in report


def test_a_row_that_lacks_a_value_breaks_no_rule_about_it(spark: Any, url: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time,x,y\n2024-01-01,1,2\n2024-01-02,,3\n2024-01-03,-1,4\n")
    rules = "[{name: x is negative, keep: x >= 0}]"
    more = f"[{{name: x is missing, keep: x is not null}}, {rules[1:-1]}]"
    for device, given, expected in (
        ("d", rules, "2 rows, 0 duplicates, 1 rejected: 1 x x is negative"),
        ("e", more, "1 rows, 0 duplicates, 2 rejected: 1 x x is missing; 1 x x is negative"),
    ):
        import_ = f"import: {{files: [a.csv], device: root.gaps.{device}, rules: {given}, rejected_max: 1}}"
        assert [expected] == [
            result.said for result in run(parse(f"database: {url}\nsteps: [{{{import_}}}]", tmp_path), spark)
        ]
    with saros.connect(url) as connection:
        assert [(1.0, 2.0), (None, 3.0)] == [
            row[1:] for row in connection.execute("select x, y from root.gaps.d").fetchall()
        ]


def test_too_many_rejected_rows_write_nothing(spark: Any, url: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time,x\n2024-01-01,1\nnever,2\n")
    text = f"database: {url}\nsteps: [{{import: {{files: [a.csv], device: root.strict.d}}}}]"
    with pytest.raises(SourceError, match=r"1 of 2 rows are rejected.*1 x time is not a time"):
        list(run(parse(text, tmp_path), spark))
    with saros.connect(url) as connection:
        assert [] == connection.execute("show devices root.strict.**").fetchall()


@pytest.mark.parametrize(("duplicates", "kept"), [("last", 2.0), ("first", 1.0)])
def test_the_later_file_is_that_of_the_later_name(
    spark: Any, url: str, tmp_path: Path, duplicates: str, kept: float
) -> None:
    """Spark reads files that have the same columns as one table, and begins with the largest file."""
    rows = "".join(f"{n},2\n" for n in range(500))
    (tmp_path / "b.csv").write_bytes(b"time,x\r\n" + rows.encode())
    (tmp_path / "a 1+%20.csv").write_text("time,x\n7,1\n")
    (tmp_path / "c.csv").write_text("x,time\n")
    import_ = (
        f"import: {{files: ['*.csv'], device: 'root.{duplicates}.d', duplicates: {duplicates}, time: {{unit: ms}}}}"
    )
    named = f"import: {{files: ['a*.csv'], device: 'root.{duplicates}.{{file}}', time: {{unit: ms}}}}"
    pipeline = parse(f"database: {url}\nsteps:\n  - {import_}\n  - {named}", tmp_path)
    said = [result.said for result in run(pipeline, spark)]
    assert ["500 rows, 1 duplicates, 0 rejected", "1 rows, 0 duplicates, 0 rejected"] == said
    with saros.connect(url) as connection:
        assert [(kept,)] == [
            row[1:] for row in connection.execute(f"select x from root.{duplicates}.d where time = 7").fetchall()
        ]
        assert [(1.0,)] == [
            row[1:] for row in connection.execute(f"select x from root.{duplicates}.`a 1+%20`").fetchall()
        ]


def test_rejected_rows_of_an_earlier_run_are_gone(spark: Any, url: str, tmp_path: Path) -> None:
    text = (
        f"database: {url}\nsteps: [{{import: {{files: [a.csv], device: root.anew.d, rejected: bad, rejected_max: 1}}}}]"
    )
    for last, rejected in (("never,2", 1), ("2024-01-02,2", 0)):
        (tmp_path / "a.csv").write_text(f"time,x\n2024-01-01,1\n{last}\n")
        list(run(parse(text, tmp_path), spark))
        assert rejected == spark.read.text(str(tmp_path / "bad")).count()


@pytest.mark.slow
@pytest.mark.skipif(not SKAB.is_dir(), reason="the SKAB files are not beside the checkout")
def test_the_examples_import_takes_skab(spark: Any, url: str, tmp_path: Path) -> None:
    (tmp_path / "skab").mkdir()
    (tmp_path / "skab" / "valve1-0.csv").symlink_to(SKAB / "valve1-0.csv")
    example = load(ROOT / "examples" / "skab.yaml")
    (result,) = run(replace(example, folder=tmp_path, database=url, steps=example.steps[:1]), spark)
    lines = (SKAB / "valve1-0.csv").read_text().splitlines()
    assert f"{len(lines) - 1} rows, 0 duplicates, 0 rejected" == result.said
    with saros.connect(url) as connection:
        row = connection.execute(
            "select `Volume Flow RateRMS`, Temperature from root.skab.`valve1-0` limit 1"
        ).fetchone()
    first = dict(zip(lines[0].split(";"), lines[1].split(";"), strict=True))
    assert row is not None
    assert (float(first["Volume Flow RateRMS"]), float(first["Temperature"])) == row[1:]
