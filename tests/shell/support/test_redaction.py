"""The redaction of statements, messages, log lines and tracebacks."""

from __future__ import annotations

import json

import pytest

from saros_shell.support.redaction import Redactor

KNOWN = frozenset({"cannot", "read", "no", "such", "file", "login", "of", "refused", "error", "at", "event", "level"})
PLAIN = Redactor(b"key", known_words=KNOWN)
WITH_NAMES = Redactor(b"key", with_names=True, known_words=KNOWN)
WITH_HOSTS = Redactor(b"key", with_hosts=True, known_words=KNOWN)


def hashed(name: str) -> str:
    return PLAIN.name(name)


def test_a_name_has_one_hash_in_a_bundle_and_another_in_the_next() -> None:
    assert PLAIN.path("root.okapi.tapir") == f"root.{hashed('okapi')}.{hashed('tapir')}"
    assert hashed("okapi") != Redactor(b"other", known_words=KNOWN).name("okapi")
    assert hashed("okapi") != hashed("tapir")


def test_paths_keep_wildcards_and_hash_quoted_nodes_like_plain_ones() -> None:
    assert f"root.{hashed('okapi')}.*.**" == PLAIN.path("root.`okapi`.*.**")
    assert "root.`odd name`.s" == WITH_NAMES.path("root.`odd name`.s")


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "select avg(tapir) from root.okapi.* where tapir > 4711 group by ([0, 9), 1h)",
            "select avg({tapir}) from root.{okapi}.* where {tapir} > ? group by ([?, ?), 1h)".format(
                tapir=hashed("tapir"), okapi=hashed("okapi")
            ),
        ),
        ("select `odd tapir` from root.data -- narwhal", f"select {hashed('odd tapir')} from root.{hashed('data')}  "),
        ("create user meerkat 'narwhal'", f"create user {hashed('meerkat')} ?"),
        ("select x'6e61' from root.a.`b.c`", f"select ? from root.{hashed('a')}.{hashed('b.c')}"),
    ],
)
def test_statements_keep_keywords_functions_and_durations(statement: str, expected: str) -> None:
    assert expected == PLAIN.statement(statement)


def test_with_names_statements_keep_series_but_neither_literals_nor_users() -> None:
    assert "select tapir from root.okapi where tapir = ?" == WITH_NAMES.statement(
        "select tapir from root.okapi where tapir = 'narwhal'"
    )
    assert f"grant role {hashed('staff')} to {hashed('meerkat')}" == WITH_NAMES.statement("grant role staff to meerkat")
    created = WITH_NAMES.statement("create timeseries root.okapi.tapir TEXT tags(place=narwhal)")
    assert f"create timeseries root.okapi.tapir TEXT tags({hashed('place')}={hashed('narwhal')})" == created


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("cannot read 'narwhal' of \"tapir\"", "cannot read '?' of \"?\""),
        ("login of meerkat refused", f"login of {hashed('meerkat')} refused"),
        ("cannot read root.okapi.tapir", f"cannot read root.{hashed('okapi')}.{hashed('tapir')}"),
        ("at saros://ann:narwhal@10.0.0.7:6667", f"at {hashed('saros')}://(login)@{PLAIN.host('10.0.0.7')}:6667"),
        ("token saros_AbCdEfGhIjKl-_0123456789", f"{hashed('token')} (token)"),
        ("at 2026-01-02T03:04:05.006Z, 04:05:06, 17.5s, 20ms", "at 2026-01-02T03:04:05.006Z, 04:05:06, 17.5s, 20ms"),
        ("no fe80::1, 127.0.0.1, hunter2", f"no {PLAIN.host('fe80::1')}, 127.0.0.1, {hashed('hunter2')}"),
        ("/home/meerkat/file", f"/{hashed('home')}/{hashed('meerkat')}/file"),
    ],
)  # fmt: skip
def test_messages_keep_known_words_numbers_and_times(message: str, expected: str) -> None:
    assert expected == PLAIN.message(message)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1:6667", "127.0.0.1:6667"),
        ("[::1]:6667", "[::1]:6667"),
        ("0.0.0.0", "0.0.0.0"),
        ("", ""),
    ],
)
def test_loopback_addresses_remain(host: str, expected: str) -> None:
    assert expected == PLAIN.host(host)


def test_hosts_are_hashed_without_their_ports_unless_they_are_wanted() -> None:
    assert PLAIN.host("db.example.org:6667") == f"{PLAIN.host('db.example.org')}:6667"
    assert "example" not in PLAIN.host("db.example.org")
    assert "10.0.0.7" not in PLAIN.host("10.0.0.7:1")
    assert "10.0.0.7:1" == WITH_HOSTS.host("10.0.0.7:1")
    assert "at 10.0.0.7:1" == WITH_HOSTS.message("at 10.0.0.7:1")


def test_fields_of_log_lines_are_redacted_by_their_kind() -> None:
    trace = (
        "Traceback:\n"
        '  File "/home/meerkat/lib/saros_engine/coordinator.py", line 7, in read\n'
        '    raise Error("narwhal")\n'
        "Error: cannot read 'narwhal'"
    )
    line = {"level": "ERROR", "event": "cannot read", "ms": 7, "statement": "select 'narwhal'", "exception": trace}
    fields = json.loads(PLAIN.log_line(json.dumps(line | {"user": "meerkat", "address": "10.0.0.7:1"})))
    assert ["ERROR", "cannot read", 7, "select ?"] == [*fields.values()][:4]
    kept = "  File \"saros_engine/coordinator.py\", line 7, in read\nError: cannot read '?'"
    assert f"{hashed('Traceback')}:\n{kept}" == fields[hashed("exception")]
    assert hashed("meerkat") in fields.values()
    assert PLAIN.host("10.0.0.7:1") in fields.values()


@pytest.mark.parametrize("line", ["narwhal", '"narwhal"', "[" * 100_000, '{"narwhal": {"narwhal": ["narwhal"]}}'])
def test_lines_that_are_no_log_lines_are_redacted_too(line: str) -> None:
    assert "narwhal" not in PLAIN.log_line(line)


def test_words_of_own_messages_remain() -> None:
    text = "Path [root.okapi] is not a database"
    assert f"Path [root.{hashed('okapi')}] is not a database" == Redactor(b"key").message(text)
