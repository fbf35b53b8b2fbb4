"""The docs describe every status code and every option."""

from __future__ import annotations

from pathlib import Path

import pytest

from saros_server.config.configuration import OPTIONS, Effect, describe, load
from saros_shell.repl.shell_config import describe_options
from saros_wire.status import STATUS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("code", sorted(STATUS))
def test_status_code_is_documented(code: int) -> None:
    status = STATUS[code]
    assert f"| {status.code} | {status.name} |" in (DOCS / "errors.md").read_text(encoding="utf-8")


#: The documentation's words for the moment when a changed option takes effect.
EFFECTS = {Effect.NOW: "now", Effect.RESTART: "restart", Effect.NEVER: "fixed"}


@pytest.mark.parametrize(("option", "default", "_", "meaning"), describe(load(environment={})))
def test_an_option_is_documented_as_saros_config_tells_it(option: str, default: str, _: str, meaning: str) -> None:
    told = f" `{default}`" if default else ""
    metadata = OPTIONS[option].metadata
    changes = EFFECTS[metadata["effect"]] + (" (file)" if metadata["file_only"] else "")
    rows = (DOCS / "configuration.md").read_text(encoding="utf-8").splitlines()
    assert f"| `{option}` |{told} | {changes} | {meaning} |" in rows


@pytest.mark.parametrize(("option", "default", "meaning"), list(describe_options()))
def test_an_option_of_the_shell_is_documented(option: str, default: str, meaning: str) -> None:
    rows = (DOCS / "commands.md").read_text(encoding="utf-8").splitlines()
    assert f"| `{option}` | `{default}` | {meaning} |" in rows
