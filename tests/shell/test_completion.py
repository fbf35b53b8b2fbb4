from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from waiting import PATIENCE_S

import saros
from saros_grammar.generated.Sql import Sql
from saros_shell.repl.backslash_commands import COMMANDS
from saros_shell.repl.completion import DatabaseNames, SarosCompleter
from saros_shell.repl.completion_context import ArgumentAt, CommandAt, PathAt, WordAt, cursor_context
from saros_shell.repl.keywords import KEYWORDS, TYPES


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", WordAt("", "")),
        ("sel", WordAt("", "sel")),
        ("select av", WordAt("select ", "av")),
        ("flush; select av", WordAt(" select ", "av")),
        ("select pump1.te", WordAt("select ", "pump1.te")),
        ("select `valve 1`.`x", WordAt("select ", "`valve 1`.`x")),
        ("select * from root.", PathAt("root", "")),
        ("select * from root.plant.pu", PathAt("root.plant", "pu")),
        ("from root.a.`b.c`.s", PathAt("root.a.`b.c`", "s")),
        ("from root.a.`b c", PathAt("root.a", "`b c")),
        ("where x = 'sel", None),
        ("where x = 'root.a", None),
        ("\\ti", CommandAt("\\ti")),
        ("\\d root.a", ArgumentAt("\\d", "root.a")),
        ("select *\n\\d root.a", ArgumentAt("\\d", "root.a")),
        ("limit 1", None),
    ],
)
def test_place_before_the_cursor(before: str, expected: object) -> None:
    assert expected == cursor_context(before)


@pytest.fixture(scope="module")
def completer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SarosCompleter]:
    with saros.connect(str(tmp_path_factory.mktemp("completion")), options={"durability": "os"}) as connection:
        connection.execute("insert into root.plant.pump1(time, temperature, state) values (1, 20.5, 'on')")
        connection.execute("insert into root.plant.pump2(time, pressure) values (1, 2)")
        connection.execute("insert into root.skab.`valve1-0`(time, x) values (1, 2.5)")
        names = DatabaseNames(lambda: connection)
        yield SarosCompleter(names, {name: command.usage for name, command in COMMANDS.items()})


def completions(completer: SarosCompleter, text: str, after: str = "") -> list[str]:
    document = Document(text + after, len(text))
    return [made.text for made in completer.get_completions(document, CompleteEvent())]


def test_words_come_in_the_case_that_is_typed(completer: SarosCompleter) -> None:
    assert ["select"] == completions(completer, "sel")
    assert ["SELECT"] == completions(completer, "SEL")
    assert "AVG(" in completions(completer, "SELECT AV")


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("select temp", " from root.plant.pump1", ["temperature"]),
        ("select temp", "", ["temperature"]),
        ("select ", "temp from root.plant.pump2", ["pressure"]),
        ("select * from root.plant.pump1 where st", "", ["startswith(", "state"]),
        ("select pump2.", " from root.plant", ["pump2.pressure"]),
        ("select pr", " from root.plant.**", ["pressure"]),
        ("insert into root.plant.pump1(te", "", ["temperature"]),
    ],
)
def test_series_are_those_of_from(completer: SarosCompleter, text: str, after: str, expected: list[str]) -> None:
    found = completions(completer, text, after)
    assert set(expected) <= set(found)
    assert "pressure" in expected or "pressure" not in found


@pytest.mark.parametrize(
    ("text", "expected", "others"),
    [
        ("show ", {"databases", "timeseries", "child"}, {"select", "avg("}),
        ("select temperature ", {"from", "as"}, {"show", "temperature"}),
        ("select * from root.plant.pump1 ", {"where", "group", "limit"}, {"from", "avg("}),
        ("select * from root.plant.pump1 group by ", {"level", "variation("}, {"avg(", "temperature"}),
        ("select * from ", {"root."}, {"temperature", "avg("}),
        ("create timeseries root.a.b with datatype=", {"DOUBLE", "INT64"}, {"GORILLA"}),
        ("create timeseries root.a.b with datatype=INT32, encoding=", {"RLE"}, {"DOUBLE"}),
        ("set time zone to ", {"'Europe/Berlin'"}, set()),
    ],
)
def test_words_are_those_that_the_grammar_allows(
    completer: SarosCompleter, text: str, expected: set[str], others: set[str]
) -> None:
    found = set(completions(completer, text))
    assert expected <= found
    assert set() == found & others


def test_aggregates_are_not_offered_in_where(completer: SarosCompleter) -> None:
    assert "avg(" in completions(completer, "select a")
    assert "abs(" in completions(completer, "select temperature from root.plant.pump1 where a")
    assert "avg(" not in completions(completer, "select temperature from root.plant.pump1 where a")
    having = "select avg(temperature) from root.plant.pump1 where time > 1 group by ([1, 3), 1ms) having a"
    assert "avg(" in completions(completer, having)


def test_series_and_functions_are_told_by_their_kind(completer: SarosCompleter) -> None:
    made = completer.get_completions(Document("select s"), CompleteEvent())
    kinds = {completion.text: completion.display_meta_text for completion in made}
    assert ("text", "aggregate", "scalar") == (kinds["state"], kinds["sum("], kinds["sin("])


def test_paths_come_from_the_database(completer: SarosCompleter) -> None:
    assert ["pump1", "pump2"] == completions(completer, "select * from root.plant.p")
    assert ["\\d", "\\dd", "\\df", "\\dn"] == completions(completer, "\\d")


@pytest.mark.parametrize("begin", ["va", "`va", "`valve1-"])
def test_a_name_in_back_quotes_is_found_without_them(completer: SarosCompleter, begin: str) -> None:
    assert ["`valve1-0`"] == completions(completer, f"select * from root.skab.{begin}")


def test_arguments_of_commands(completer: SarosCompleter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "export.sql").touch()
    (tmp_path / "saros" / "queries").mkdir(parents=True)
    (tmp_path / "saros" / "queries" / "hot.sql").touch()
    assert ["csv"] == completions(completer, "\\format c")
    assert ["Europe/Berlin"] == completions(completer, "\\zone europe/berl")
    assert ["off"] == completions(completer, "\\timing of")
    assert ["select"] == completions(completer, "\\h sel")
    assert ["hot"] == completions(completer, "\\n h")
    assert ["pump1", "pump2"] == completions(completer, "\\d root.plant.p")
    assert ["root."] == completions(completer, "\\d r")
    assert "temperature" in completions(completer, "\\watch 5 select temp")
    assert "temperature" in completions(completer, "\\plot select temp")
    for text in ("\\i ex", "\\o ex", "\\e ex", "\\copy (select * from root.a) to ex", "\\copy (select x) to 'ex"):
        assert ["port.sql"] == completions(completer, text)
    (tmp_path / "my export.csv").touch()
    for text in ("\\copy (select x) to 'my ex", '\\copy(select x) to "my ex', "\\i my ex"):
        assert ["port.csv"] == completions(completer, text)
    assert ["ros"] == completions(completer, "\\c sa")
    assert [] == completions(completer, "\\l a")


def test_a_lookup_that_fails_completes_nothing(tmp_path: Path) -> None:
    connection = saros.connect(str(tmp_path))
    connection.close()
    closed = SarosCompleter(DatabaseNames(lambda: connection), {})
    assert [] == completions(closed, "select * from root.a")


def test_a_prompt_that_ends_during_completion_returns(completer: SarosCompleter) -> None:
    """The look-up ends only after the prompt has ended, so its completions are discarded."""
    begun, released = threading.Event(), threading.Event()

    class Slow(DatabaseNames):
        def children(self, path: str) -> list[tuple[str, str]]:
            begun.set()
            assert released.wait(PATIENCE_S)
            return [(f"node{n}", "node") for n in range(5)]

    slow = SarosCompleter(Slow(completer._names.connection), {})

    async def prompt() -> None:
        document = Document("select * from root.")
        reading = asyncio.ensure_future(anext(slow.get_completions_async(document, CompleteEvent())))
        await asyncio.get_running_loop().run_in_executor(None, begun.wait, PATIENCE_S)
        reading.cancel()
        released.set()
        with pytest.raises(asyncio.CancelledError):
            await reading

    asyncio.run(asyncio.wait_for(prompt(), PATIENCE_S))


def test_every_keyword_of_the_grammar_is_coloured_and_completed() -> None:
    known = {*KEYWORDS, *TYPES}
    assert [] == [word for word in Sql.symbolicNames[Sql.ABORT : Sql.ZONE + 1] if word not in known and word != "ROOT"]
