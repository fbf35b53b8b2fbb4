"""Every statement in the boxes of the SQL reference runs, in the order of the pages; every kind of statement occurs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from engine.installed_package import install_example

import saros
from saros_grammar.parser import parse
from saros_grammar.syntax.ast import Count, CreateTimeseries, NotSupported, Show, ShowKind, Statement
from saros_server import foreground
from saros_shell.cluster import command as cluster_command
from saros_shell.commands import bench, shell, sync, tsfile, verify
from saros_shell.mqtt import command as mqtt_command
from saros_shell.repl.backslash_commands import COMMANDS
from saros_shell.transfer import exporter, importer
from saros_spark.pipeline import command as spark_command
from saros_storage.base.types import DataType
from saros_wire.status import STATUS

DOCS = Path(__file__).parents[2] / "docs"
#: The reference's files, in the order in which its index lists them.
FILES = re.findall(r"\]\((sql/\w+\.md)\)", (DOCS / "sql.md").read_text(encoding="utf-8"))
REFERENCE = "\n".join((DOCS / name).read_text(encoding="utf-8") for name in FILES)


def boxes(kind: str, text: str = REFERENCE) -> list[str]:
    """Return the statements in the boxes (fenced blocks) of a kind, such as `sql`."""
    found = re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)
    return [line.removesuffix(";") for box in found for line in box.strip().splitlines()]


STATEMENTS = boxes("sql")
ERRORS = (DOCS / "sql" / "errors.md").read_text(encoding="utf-8")
#: Pairs of an error code and a statement that fails with this code.
EXPECTED_ERRORS = [(int(code), text) for code, text in (line.split(maxsplit=1) for line in boxes("sql error"))]
#: Statements that need a cluster.
OF_CLUSTERS = boxes("sql cluster")


#: The statements that need a database to which a sender of the sync tool has sent data.
OF_SENDERS = boxes("sql senders")


@pytest.mark.slow
def test_every_statement_of_the_reference_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_example(monkeypatch, tmp_path / "installed")
    (tmp_path / "files").mkdir()
    with saros.connect(str(tmp_path / "other"), options={"durability": "os"}) as connection:
        connection.insert("root.plant.pump2", [1_704_067_200_000], {"temperature": [20.5]})
    target = ["-o", str(tmp_path / "files" / "plant.tsfile"), "-d", str(tmp_path / "other"), "--quiet"]
    assert 0 == exporter.main(["root.**", *target])
    with saros.connect(str(tmp_path / "data"), options={"durability": "os"}) as connection:
        for text in STATEMENTS:
            cursor = connection.execute(text.replace("'/files", f"'{tmp_path}/files"))
            if cursor.description is not None:
                cursor.fetchall()


@pytest.mark.parametrize("text", OF_CLUSTERS)
def test_statements_of_clusters_are_refused_without_one(text: str, tmp_path: Path) -> None:
    with saros.connect(str(tmp_path)) as connection, pytest.raises(saros.NotSupportedError, match="outside a cluster"):
        connection.execute(text)


@pytest.mark.parametrize("text", OF_SENDERS)
def test_statements_about_senders_name_one_that_is_there(text: str, tmp_path: Path) -> None:
    with saros.connect(str(tmp_path)) as connection, pytest.raises(saros.ProgrammingError, match="SHOW SENDERS"):
        connection.execute(text)


@pytest.mark.slow
def test_statements_fail_as_the_reference_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_example(monkeypatch, tmp_path / "installed")
    with saros.connect(str(tmp_path / "data"), options={"durability": "os"}) as connection:
        for text in boxes("sql", ERRORS):
            connection.execute(text)
        for code, text in EXPECTED_ERRORS:
            with pytest.raises(saros.Error) as caught:
                connection.execute(text).fetchall()
            assert caught.value.code == code, f"{text}: {caught.value}"


def test_every_code_is_in_the_reference() -> None:
    shown = {code for code, _ in EXPECTED_ERRORS}
    for cell in re.findall(r"^\| ([\d, to]+) \|", ERRORS, re.MULTILINE):
        for span in cell.split(", "):
            first, _, last = span.partition(" to ")
            shown.update(code for code in STATUS if int(first) <= code <= int(last or first))
    assert shown == set(STATUS)


def test_every_type_is_in_the_reference() -> None:
    statements = [statement for text in STATEMENTS if isinstance(statement := parse(text).statement, CreateTimeseries)]
    assert {column.type_name for statement in statements for column in statement.columns} == {t.name for t in DataType}


def test_every_kind_of_statement_is_in_the_reference() -> None:
    statements = [parse(text).statement for text in [*STATEMENTS, *OF_CLUSTERS, *OF_SENDERS]]
    shown = {statement.kind for statement in statements if isinstance(statement, (Show, Count))}
    assert set(get_args(Statement)) - {NotSupported} == {type(statement) for statement in statements}
    assert set(ShowKind) == shown


@pytest.mark.parametrize("module", [shell, importer, exporter, mqtt_command, bench, verify], ids=lambda m: m.__name__)
def test_options_of_commands_are_documented(module: object) -> None:
    check_options(module.parser())  # type: ignore[attr-defined]


def test_commands_of_the_shell_are_documented() -> None:
    text = (DOCS / "commands.md").read_text(encoding="utf-8").replace("\\|", "|")
    for known in COMMANDS.values():
        assert f"`{known.usage}`" in text


def test_options_of_the_server_are_documented() -> None:
    check_options(foreground.parser())


def test_options_of_the_spark_shell_are_documented() -> None:
    check_options(spark_command.shell_parser())


@pytest.mark.parametrize(
    "parser",
    [cluster_command.parser, tsfile.parser, spark_command.pipeline_parser, sync.parser],
    ids=lambda p: p.__module__,
)
def test_parts_and_options_of_commands_are_documented(parser: Callable[[], argparse.ArgumentParser]) -> None:
    text = (DOCS / "commands.md").read_text(encoding="utf-8")
    made = parser()
    (parts,) = [a for a in made._actions if isinstance(a, argparse._SubParsersAction)]
    for name, part in parts.choices.items():
        assert f"`{made.prog} {name}`" in text
        check_options(part)


def check_options(parser: argparse.ArgumentParser) -> None:
    text = (DOCS / "commands.md").read_text(encoding="utf-8")
    for action in parser._actions:
        for option in action.option_strings:
            if option not in ("-h", "--help"):
                assert f"`{option}`" in text, option
