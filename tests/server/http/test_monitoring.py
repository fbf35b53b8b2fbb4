"""Slow statements and the end of the audit trail over HTTP, and which users may see them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server.http.http_node import HttpNode, http_server, make_users
from server.secured import ANN, ROOT

AS_ANN: dict[str, Any] = {"auth": ("ann", ANN)}
AS_ROOT: dict[str, Any] = {"auth": ("root", ROOT)}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[HttpNode]:
    make_users(tmp_path / "data")
    with http_server(tmp_path / "data") as found:
        yield found


def statements(node: HttpNode, **options: Any) -> list[tuple[str, str]]:
    found = node.client.get("/statements/slow", **options).json()["statements"]
    return [(slow["user"], slow["statement"]) for slow in found]


def test_slow_statements_are_listed_without_values_to_those_who_may_see_them(
    node: HttpNode, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(node.api.node.engine.slow_queries, "threshold_ms", 0)
    node.sql("insert into root.a.d(time, secret) values (1, 4711)", **AS_ROOT)
    node.sql("show current_user", **AS_ANN)
    assert ["ann", "root"] == [user for user, _ in statements(node, **AS_ROOT)]
    assert "4711" not in statements(node, **AS_ROOT)[1][1]
    assert [("ann", "show current_user")] == statements(node, **AS_ANN)
    logged = [vars(record)["statement"] for record in caplog.records if record.getMessage() == "slow statement"]
    assert ["insert into root.a.d(time, secret) values (?, ?)", "show current_user"] == logged


def test_administrators_read_the_newest_lines_of_the_audit_trail(node: HttpNode) -> None:
    for name in ("one", "two", "three"):
        assert 200 == node.sql(f"create database root.{name}", **AS_ROOT).status_code
    node.sql("create database root.stolen", **AS_ANN)
    everything = node.client.get("/audit", **AS_ROOT).json()
    assert True is everything["complete"]
    assert "create database root.stolen" == everything["lines"][0]["statement"]
    newest = node.client.get("/audit", params={"user": "root", "event": "schema", "limit": 2}, **AS_ROOT).json()
    assert ["create database root.three", "create database root.two"] == [line["statement"] for line in newest["lines"]]
    assert False is newest["complete"]
    denied = node.client.get("/audit", params={"event": "denied"}, **AS_ROOT).json()["lines"]
    assert [("ann", 803)] == [(line["user"], line["code"]) for line in denied]


def test_others_do_not_read_the_audit_trail(node: HttpNode) -> None:
    answer = node.client.get("/audit", **AS_ANN)
    assert (403, 803) == (answer.status_code, answer.json()["code"])
    assert "an administrator is needed" in answer.json()["message"]


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "x", "9" * 40])
def test_a_limit_of_lines_that_is_none_is_refused(node: HttpNode, limit: str) -> None:
    assert 400 == node.client.get("/audit", params={"limit": limit}, **AS_ROOT).status_code
