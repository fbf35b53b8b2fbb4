"""What users can meet is in the docs: every status code, every option."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from saros_server.configuration import Configuration
from saros_wire.status import STATUS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("code", sorted(STATUS))
def test_status_code_is_documented(code: int) -> None:
    status = STATUS[code]
    assert f"| {status.code} | {status.name} |" in (DOCS / "errors.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", [f.name for f in fields(Configuration)])
def test_option_is_documented(option: str) -> None:
    assert f"| `{option}` |" in (DOCS / "configuration.md").read_text(encoding="utf-8")
