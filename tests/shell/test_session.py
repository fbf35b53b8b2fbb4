"""Statements and backslash commands from a file or a pipe."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import saros
from saros_shell.commands.shell import main
from saros_shell.repl.runner import StatementRunner
from saros_shell.repl.session import Session

INSERT = "insert into root.a.d(time, x) values (1, 1.5), (2, 2.5);"


@pytest.fixture
def piped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Return a function that runs the shell on piped text, and returns exit code, output and error messages."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, *arguments: str) -> tuple[int, list[str], list[str]]:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        code = main([*arguments, "data"])
        out, err = capsys.readouterr()
        return code, out.splitlines(), err.splitlines()

    return run


def test_commands_stand_between_statements(piped) -> None:
    code, out, err = piped(
        f"{INSERT}\n\\x\n\\copy (select x from root.a.d) to d.csv\nselect x from root.a.d where time = 1;"
    )
    assert (0, []) == (code, err)
    assert ["done, 2 points", "format is vertical"] == out[:2]
    assert "root.a.d.x | 1.5" in out
    assert "Time,root.a.d.x" == Path("d.csv").read_text(encoding="utf-8").splitlines()[0]


def test_what_was_not_run_behind_a_mistake_is_counted(piped) -> None:
    """The error shows which of many pasted statements failed, but not how many statements follow it."""
    text = f"{INSERT}\nselct 1;\n{INSERT}\n-- a comment;\n\\l\nselect x from root.a.d;"
    code, out, err = piped(text)
    assert (1, ["done, 2 points"]) == (code, out)
    assert "note: 3 statements after it were not run" == err[-1]
    assert "note: 1 statement after it was not run" == piped(f"selct 1;\n{INSERT}")[2][-1]
    assert "after it" not in "".join(piped(text, "--continue")[2])
    assert "after it" not in "".join(piped(f"{INSERT}\nselct 1;")[2])


def test_a_statement_without_its_semicolon_before_a_command_is_named(piped) -> None:
    code, out, err = piped(f"{INSERT}\nselect x from root.a.d\n\\timing on\nselect count(x) from root.a.d;\n{INSERT}")
    assert (1, ["done, 2 points"]) == (code, out)
    assert [r"<stdin>:2: the statement before \timing on lacks its ;", "note: 1 statement after it was not run"] == err


def test_rows_for_programs_are_not_mixed_with_notes(piped) -> None:
    code, out, _ = piped(f"{INSERT}\n\\pager off\nselect count(x) from root.a.d;", "--format", "csv")
    assert (0, ["count(root.a.d.x)", "2"]) == (code, out)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ("\\nonsense", "there is no command \\nonsense"),
        ("\\d root.", "error 700"),
        ("\\i gone.sql", "cannot read gone.sql"),
    ],
)
def test_a_command_that_fails_ends_the_script(piped, wrong: str, complaint: str) -> None:
    code, out, err = piped(f"{INSERT}\n{wrong}\nselect x from root.a.d;")
    assert (1, ["done, 2 points"]) == (code, out)
    assert complaint in err[0]
    code, out, _ = piped(f"{wrong}\nselect x from root.a.d;", "--continue")
    assert (1, "(2 rows)") == (code, out[-1])


def test_words_that_other_shells_know_are_commands(piped) -> None:
    code, out, err = piped("help;\nQuit;\nselect x from root.a.d;")
    assert (0, []) == (code, err)
    assert any(line.startswith("\\timing") for line in out)


def test_a_file_may_hold_commands_and_leave(piped) -> None:
    Path("inner.sql").write_text(f"{INSERT}\n\\l\n\\q\nselect x from root.a.d;", encoding="utf-8")
    code, out, _ = piped("\\i inner.sql\nselect x from root.a.d;")
    assert 0 == code
    assert "root.a" in [line.split(" ")[0] for line in out]
    assert "(2 rows)" not in out


@pytest.mark.parametrize("path", ["root.a.d", "root.a", "root.a.d.x", "root.a.d.*", ""])
def test_a_path_lists_the_series_below_it(piped, path: str) -> None:
    code, out, _ = piped(f"{INSERT}\n\\d {path}")
    assert (0, "(1 row)", True) == (code, out[-1], out[-2].startswith("root.a.d.x "))


def test_files_that_are_no_text_are_refused_by_name(piped) -> None:
    Path("bad.sql").write_bytes(b"select 1;\xff")
    code, _, err = piped("", "-f", "bad.sql")
    assert (2, ["saros shell: cannot read bad.sql: it is not UTF-8 text (at byte 9)"]) == (code, err)
    code, _, err = piped("\\i bad.sql\n")
    assert (1, ["<stdin>:1: cannot read bad.sql: it is not UTF-8 text (at byte 9)"]) == (code, err)


def test_nobody_who_answers_is_no_mistake_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    assert 1 == main([f"saros://127.0.0.1:{port}", "-e", "show version"])
    assert "no Saros node answers" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [("--zone", "Mars/Base"), ("--timeout", "nan"), ("--timeout", "-1")])
def test_an_option_that_cannot_be_is_refused_before_anything_runs(piped, wrong: tuple[str, str]) -> None:
    code, out, err = piped(INSERT, *wrong)
    assert (2, [], 1) == (code, out, len(err))
    assert wrong[1] in err[0]


@pytest.mark.parametrize("word", ["\\help", "help", "\\?"])
def test_help_is_found(piped, word: str) -> None:
    code, out, _ = piped(f"{word}\n")
    assert (0, True) == (code, any("list databases" in line for line in out))


@pytest.mark.parametrize("command", ["\\?", "\\h"])
def test_help_is_broken_between_words_if_the_terminal_is_narrow(tmp_path: Path, command: str) -> None:
    def printed(screen: tuple[int, int] | None) -> list[str]:
        lines: list[str] = []
        runner = StatementRunner(connection, lines.extend, lines.extend, screen=(lambda: screen) if screen else None)
        assert Session(runner).run(command)
        return lines

    with saros.connect(tmp_path) as connection:
        whole, broken = printed(None), printed((60, 20))
    assert max(map(len, whole)) > 60
    assert max(map(len, broken)) <= 60
    assert " ".join(whole).split() == " ".join(broken).split()


def test_what_fails_in_a_script_is_named_with_file_and_line(piped) -> None:
    script = f"{INSERT}\n\n-- why\nselect x\nfrom root.a.d whre x > 1;\nselect nothing from root.b;\n\\nix\n"
    Path("a.sql").write_text(script, encoding="utf-8")
    code, _, err = piped("", "-f", "a.sql")
    assert (1, "a.sql:4: error 700 (SQL_PARSE_ERROR): line 2, column 15") == (code, err[0].partition(": unexp")[0])
    code, _, err = piped("", "-f", "a.sql", "--continue")
    assert ["a.sql:4: ", "a.sql:7: "] == [line[:9] for line in err if ".sql:" in line]
    code, _, err = piped("\\i a.sql\n")
    assert (1, True) == (code, err[0].startswith("a.sql:4: error 700"))
    code, _, err = piped(script)
    assert (1, True) == (code, err[0].startswith("<stdin>:4: error 700"))
    code, _, err = piped("", "-e", "selec")
    assert (1, True) == (code, err[0].startswith("error 700"))


@pytest.mark.slow
@pytest.mark.parametrize("piping", [False, True])
def test_a_script_may_have_line_ends_of_windows_and_of_values(tmp_path: Path, *, piping: bool) -> None:
    script = b"insert into root.a.d(time, s) values (1, 'a\r\nb'), (2, 'c\rd');\r\nselect s\r\nfrom root.a.d;\r\n"
    (tmp_path / "a.sql").write_bytes(b"\xef\xbb\xbf" * (not piping) + script)
    how = [] if piping else ["-f", str(tmp_path / "a.sql")]
    command = [sys.executable, "-m", "saros_shell", "shell", str(tmp_path / "data"), "--format", "json", *how]
    done = subprocess.run(command, input=script if piping else b"", capture_output=True, check=False)
    assert (0, b"") == (done.returncode, done.stderr)
    assert ["a\r\nb", "c\rd"] == [json.loads(line)["root.a.d.s"] for line in done.stdout.splitlines()[:2]]


def test_series_are_listed_with_what_some_of_them_have(piped) -> None:
    script = "create timeseries root.a.d.x with datatype=double;\n"
    _, out, _ = piped(f"{script}\\d")
    assert ["Timeseries", "DataType", "Encoding", "Compression"] == [name.strip() for name in out[1].split("|")]
    _, out, _ = piped("create timeseries root.a.d.y(up) with datatype=double tags(unit=C);\n\\d")
    assert ["Compression", "Alias", "Tags"] == [name.strip() for name in out[1].split("|")][3:]
    _, out, _ = piped("\\d", "--format", "csv")
    assert out[0].startswith("Timeseries,Alias,Database,")


def test_quiet_prints_rows_and_errors_only(piped) -> None:
    code, out, err = piped(f"{INSERT}\n\\timing on\nselect x from root.a.d where time = 1;", "--quiet")
    assert (0, "root.a.d.x", "(1 row)") == (code, out[0].split("|")[1].strip(), out[-1])
    assert 1 == len(err)  # the duration, because of \timing


def test_a_list_of_databases_is_short(piped) -> None:
    _, out, _ = piped(f"{INSERT}\n\\l")
    assert ["Database", "root.a"] == [line.strip() for line in (out[1], out[3])]


@pytest.mark.parametrize("name", ["my rows.csv", "rows.csv"])
def test_rows_go_to_a_file_until_they_go_to_the_screen_again(piped, name: str) -> None:
    script = f"{INSERT}\n\\format csv\n\\o '{name}'\nselect x from root.a.d;\n\\o\nselect count(x) from root.a.d;"
    code, out, err = piped(script)
    assert (0, [], ["count(root.a.d.x)", "2"]) == (code, err, out[-2:])
    rows = ["1970-01-01T00:00:00.001Z,1.5", "1970-01-01T00:00:00.002Z,2.5"]
    assert ["Time,root.a.d.x", *rows] == Path(name).read_text(encoding="utf-8").splitlines()


def test_a_file_for_rows_that_cannot_be_written_is_named(piped) -> None:
    code, _, err = piped(f"{INSERT}\n\\o gone/rows.csv")
    assert (1, True) == (code, "cannot write gone/rows.csv: No such file or directory" in err[0])
    code, out, err = piped("\\o /dev/full\nselect x from root.a.d;\nselect count(x) from root.a.d;", "--continue")
    assert (1, True) == (code, "cannot write /dev/full: No space left on device" in err[0])
    assert "count(root.a.d.x)" in out


def test_a_result_goes_to_a_file_whose_name_is_in_quotes(piped) -> None:
    for quote in "'\"":
        code, _, err = piped(f"{INSERT}\n\\copy (select x from root.a.d) to {quote}my out.csv{quote}")
        assert (0, []) == (code, err)
        assert "Time,root.a.d.x" == Path("my out.csv").read_text(encoding="utf-8").splitlines()[0]
        Path("my out.csv").unlink()


@pytest.mark.parametrize(
    ("written", "name"),
    [("'it''s.csv'", "it's.csv"), ('"my ""best"" run.csv"', 'my "best" run.csv'), ("it's.csv", "it's.csv")],
)
def test_the_name_of_a_file_may_contain_quotes(piped, written: str, name: str) -> None:
    code, out, err = piped(f"{INSERT}\n\\copy (select x from root.a.d) to {written}\n\\o {written}\n\\o")
    assert (0, [], f"2 rows -> {name}", f"rows go to {name}") == (code, err, out[1], out[2])
    assert [Path(name)] == [file for file in Path().iterdir() if file.name != "data"]


def test_an_unquoted_name_with_spaces_is_refused_with_the_remedy(piped) -> None:
    code, _, err = piped(f"{INSERT}\n\\copy (select x from root.a.d) to my out.csv")
    assert (1, True) == (code, "in quotes if it contains spaces" in err[0])
    assert ["data"] == [file.name for file in Path().iterdir()]


@pytest.mark.parametrize("source", ["root.a.d from x.csv", "root.a.d(time, x) FROM 'my file.csv'"])
def test_copying_from_a_file_names_the_command_that_does_it(piped, source: str) -> None:
    code, _, err = piped(f"\\copy {source}")
    assert (1, True) == (code, "run `saros import`" in err[0])


def test_arguments_of_commands_begin_after_blanks_or_a_bracket(piped) -> None:
    code, out, err = piped(f"{INSERT}\n\\copy(select x from root.a.d) to x.csv\n\\dn\troot.a")
    assert (0, [], "2 rows -> x.csv") == (code, err, out[1])
    assert ["ChildNodes", "----------", "d"] == [line.strip() for line in out[2:5]]


def test_another_database_is_connected_to(piped) -> None:
    other = "insert into root.b.d(time, y) values (1, 7);\nselect y from root.b.d;"
    code, out, err = piped(f"{INSERT}\n\\c other\n{other}\n\\conninfo\n\\c data\nselect count(x) from root.a.d;")
    assert (0, []) == (code, err)
    assert ["connected to other, a new database", "connected to data"] == [line for line in out if "connected" in line]
    assert f"folder    {Path('other').absolute()}, in this process" in out
    assert "time zone UTC" in out
    assert "2" == out[-2].strip()


def test_a_connection_to_a_temporary_or_read_only_folder_says_so(piped) -> None:
    assert (0, []) == piped(INSERT)[::2]
    code, out, err = piped("\\conninfo\n\\c :memory:\n\\conninfo")
    data = Path("data").absolute()
    assert (0, []) == (code, err)
    assert [f"folder    {data}, in this process", "folder    temporary, in this process"] == out[0::3][:2]
    assert f"folder    {data}, in this process, read-only" == piped("\\conninfo", "--read-only")[1][0]


def test_a_connection_that_fails_leaves_the_one_before(piped) -> None:
    Path("full").mkdir()
    Path("full/something").touch()
    code, out, err = piped(f"{INSERT}\n\\c full\nselect count(x) from root.a.d;", "--continue")
    assert (1, "2") == (code, out[-2].strip())
    assert "full" in err[0]


def test_a_named_query_is_saved_listed_run_and_deleted(piped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(Path.cwd()))
    saved = "select x from root.a.d where x > $1"
    code, out, err = piped(f"{INSERT}\n\\ns hot {saved};\n\\n\n\\n hot 2")
    assert (0, []) == (code, err)
    assert ["saved hot", f"hot: {saved}"] == out[1:3]
    assert "(1 row)" == out[-1]
    assert f"{saved}\n" == Path("saros/queries/hot.sql").read_text(encoding="utf-8")
    for wrong, complaint in (
        ("\\n hot", f"hot takes 1 parameters, not 0: {saved}"),
        ("\\n hot 'a", "cannot read the parameters: No closing quotation"),
        ("\\n cold", "there is no query named cold; \\n lists all queries"),
        ("\\nd cold", "there is no query named cold; \\n lists all queries"),
        ("\\ns a/b select 1", "cannot save the query: a name consists of letters, digits, - and _, not 'a/b'"),
        ("\\ns hot", "\\ns needs a name and a statement: \\ns hot select last * from root.plant.**"),
    ):
        assert (1, [f"<stdin>:1: {complaint}"]) == piped(wrong)[::2]
    assert (0, ["deleted hot"], []) == piped("\\nd hot\n\\n")


def test_a_named_query_does_not_replace_one_whose_name_differs_only_in_case(
    piped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(Path.cwd()))
    assert 0 == piped("\\ns Hot select x from root.a.d")[0]
    complaint = "cannot save the query: there is a query named Hot; use a name that differs in more than case"
    assert (1, [f"<stdin>:1: {complaint}"]) == piped("\\ns hot select y from root.a.d")[::2]
    assert (0, ["saved Hot", "Hot: select z from root.a.d"], []) == piped("\\ns Hot select z from root.a.d\n\\n")
    Path("saros/queries/hot.sql").write_text("select 1")  # saved by an earlier version
    assert (0, ["saved hot"], []) == piped("\\ns hot select 2")


@pytest.mark.parametrize("words", ["\\h explain", "help explain;", "HELP Explain"])
def test_the_syntax_of_a_statement_is_shown(piped, words: str) -> None:
    assert (0, ["EXPLAIN [ANALYZE [VERBOSE]] statement"], []) == piped(words)


def test_a_word_that_begins_no_statement_is_named(piped) -> None:
    assert (
        "<stdin>:1: no statement begins with selct; did you mean SELECT?; \\h lists the first words"
        in piped("\\h selct")[2]
    )
    assert "insert" in piped("\\h")[1][0]


def test_a_result_is_plotted(piped) -> None:
    code, out, err = piped(f"{INSERT}\n\\plot select x from root.a.d")
    assert (0, []) == (code, err)
    assert "root.a.d.x" == out[1]
    assert "2.5 │" in out[2]
    assert "1970-01-01 00:00:00.001" in out[-1]
    for wrong, complaint in (
        ("\\plot", "\\plot needs a query"),
        ("\\plot flush", "\\plot needs a query that returns rows"),
        ("\\plot select count(x) from root.a.d", "nothing to plot: there is no column of times"),
        ("\\plot select x from root.a.d where time > 5", "nothing to plot: there are no numbers"),
    ):
        assert complaint in piped(wrong)[2][0]


def test_nothing_is_asked_where_nobody_can_answer(piped) -> None:
    code, out, _ = piped(f"{INSERT}\ndelete from root.a.**;\ndrop database root.a;")
    assert (0, ["done, in 1 series", "done"]) == (code, out[1:])


def test_an_editor_needs_a_terminal(piped) -> None:
    assert (1, ["<stdin>:1: \\e needs a terminal"]) == piped("\\e")[::2]
