"""Messages about mistyped commands and options."""

from __future__ import annotations

import pytest

from saros_shell.main import main


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("shel", "saros: unknown command 'shel'; did you mean shell?"),
        ("stat", "saros: unknown command 'stat'; did you mean status?"),
        ("zzz", "saros: unknown command 'zzz'"),
        ("shell --fromat csv", "saros shell: error: unknown option --fromat; did you mean --format?"),
        ("shell --fromat=csv", "saros shell: error: unknown option --fromat; did you mean --format?"),
        ("shell --zzz", "saros shell: error: unknown option --zzz"),
        ("shell a b", "saros shell: error: unexpected argument 'b'"),
        ("start --prot 7", "saros start: error: unknown option --prot; did you mean --port?"),
        ("start --port x", "saros start: error: argument --port: 'x' is not a whole number"),
        ("shell --timeout soon", "saros shell: error: argument --timeout: 'soon' is not a number"),
        ("import a.csv --batch-rows 0", "saros import: error: argument --batch-rows: 0 is too small: at least 1"),
        ("bench --clients 0", "saros bench: error: argument --clients: 0 is too small: at least 1"),
        ("bench --points many", "saros bench: error: argument --points: 'many' is not a whole number"),
        ("bench --late 10", "saros bench: error: argument --late: 10 is not a fraction from 0 to 1, such as 0.1"),
        ("bench --late often", "saros bench: error: argument --late: often is not a fraction from 0 to 1, such as 0.1"),
        ("user", "saros user: error: the following arguments are required: VERB"),
        ("pipeline", "saros pipeline: error: the following arguments are required: VERB"),
        (
            "cluster up --nodes 3 --replcas 2",
            "saros cluster up: error: unknown option --replcas; did you mean --replicas?",
        ),
        (
            "shell --format cvs",
            "saros shell: error: argument --format: 'cvs' is not one of table, csv, json, vertical; did you mean csv?",
        ),
    ],
)
def test_a_wrong_word_is_named_with_what_it_resembles(
    words: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: object = main(words.split())
    except SystemExit as left:
        code = left.code
    err = capsys.readouterr().err.splitlines()
    assert (2, True) == (code, told in err), err


def test_a_wrong_sub_command_is_named_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["cluster", "stats"])
    assert "did you mean status?" in capsys.readouterr().err
