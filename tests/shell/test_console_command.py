"""`saros console`: the link that it prints, and the console that it serves."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from server.http.http_node import http_server
from waiting import PATIENCE_S

from saros_shell.commands import console

PAGE = Path(__file__).parents[2] / "docs" / "console.md"
PAGE_COMMANDS = re.findall(r"^    \$ saros console (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(
    ("target", "link"),
    [
        ("http://db:18080", "http://db:18080/console/"),
        ("https://db.example.org/console/", "https://db.example.org/console/"),
        ("db:8080", "http://db:8080/console/"),
        ("localhost", "http://localhost:18080/console/"),
        ("saros://root@db:6667,db2:6667/?tls=ca.pem", "http://db:18080/console/"),
        ("[::1]:18080", "http://[::1]:18080/console/"),
    ],
)
def test_a_running_node_is_opened(
    target: str, link: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert 0 == console.main([target])
    assert (f"{link}\n", [link]) == (capsys.readouterr().out, opened)


def test_a_folder_that_a_server_has_open_is_shown_by_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with http_server(tmp_path / "data") as node:
        assert 0 == console.main([str(tmp_path / "data"), "--no-browser"])
        assert f"{node.url}/console/\n" == capsys.readouterr().out


def test_the_page_names_a_running_node_as_the_command_takes_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    (target,) = (words for words in PAGE_COMMANDS if ":" in words)
    assert 0 == console.main([target])
    assert (f"http://{target}/console/\n", [f"http://{target}/console/"]) == (capsys.readouterr().out, opened)


@pytest.mark.slow
def test_a_folder_is_served_as_the_page_says_until_the_process_is_told_to_end(tmp_path: Path) -> None:
    (target,) = (words for words in PAGE_COMMANDS if ":" not in words)
    command = [sys.executable, "-m", "saros_shell", "console", target, "--no-browser"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        url, _, ticket = process.stdout.readline().strip().partition("/console/#ticket=")
        answer = httpx.post(f"{url}/console/ticket", json={"ticket": ticket}, timeout=PATIENCE_S)
        again = httpx.post(f"{url}/console/ticket", json={"ticket": ticket}, timeout=PATIENCE_S)
        licences = httpx.get(f"{url}/console/THIRD_PARTY.txt", timeout=PATIENCE_S)
        os.kill(process.pid, signal.SIGTERM)
        assert (200, 0) == (answer.status_code, process.wait(PATIENCE_S))
    assert (401, 200, True) == (again.status_code, licences.status_code, "uplot" in licences.text)
    assert (tmp_path / target).is_dir()


def test_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x")
    assert 1 == console.main([str(tmp_path / "file"), "--no-browser"])
    assert "is a file, not a data folder" in capsys.readouterr().err
