"""The shell's history, which records the typed lines, but never a password."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from saros_shell.repl.history import may_hold_password, open_history

SECRET = "a long secret"


@pytest.mark.parametrize(
    "text",
    [
        f"create user ann '{SECRET}';",
        f'CREATE USER `ann` "{SECRET}"',
        f"alter user ann\n  set password '{SECRET}';",
        f"select 1; alter user ann set password '{SECRET}'; show users;",
        f"creat user ann '{SECRET};",
        f"alter usr ann set password {SECRET}",
    ],
)
def test_what_may_hold_a_password_is_forgotten(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    history = open_history()
    history.append_string("show users;")
    history.append_string(text)
    file = tmp_path / "saros" / "history"
    assert "show users" in file.read_text()
    assert SECRET not in file.read_text()
    assert ["show users;"] == history.get_strings()
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)


def test_in_memory_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    history = open_history()
    history.append_string("select 1;")
    history.append_string(f"create user ann '{SECRET}';")
    assert ["select 1;"] == history.get_strings()


@pytest.mark.parametrize(
    "text", ["select temperature from root.plant", "show users", "drop user ann", "list of user ann"]
)
def test_other_texts_are_kept(text: str) -> None:
    assert not may_hold_password(text)
