"""The walk-through of docs/mqtt.md runs as written, except for the ports of the broker."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from free_ports import HOST
from shell.mqtt.command_process import receiving
from shell.mqtt.mosquitto import needs_mosquitto_clients, running

from saros_shell.mqtt.dead_letters import DeadLetter, DeadLetterFile

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "mqtt.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line) for line in re.findall(r"^    \$ (.*)$", PAGE, re.MULTILINE)]


def commands_of(program: str) -> list[list[str]]:
    return [words[1:] for words in COMMANDS if words[0] == program]


@needs_mosquitto_clients
@pytest.mark.slow
def test_the_walk_through(tmp_path: Path) -> None:
    (bridge, shell) = commands_of("saros")
    with (
        running(tmp_path / "broker") as broker,
        receiving(tmp_path, [word.replace(f"mqtt://{HOST}", broker.url) for word in bridge[1:]]) as command,
    ):
        for words in commands_of("mosquitto_pub"):
            subprocess.run(["mosquitto_pub", "-h", HOST, "-p", str(broker.port), *words], check=True)
        assert 0 == command.stop()
    words = [sys.executable, "-m", "saros_shell", *shell, "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [["on", 20.5], ["off", 21.0]] == [list(row.values())[1:] for row in rows]


def test_a_dead_letter_looks_as_it_does_there(tmp_path: Path) -> None:
    (shown,) = re.findall(r"^    (\{\"time\".*)$", PAGE, re.MULTILINE)
    letter = json.loads(shown)
    file = DeadLetterFile(str(tmp_path / "dead.jsonl"), 1_000)
    file.append([DeadLetter(letter["topic"], letter["payload"].encode(), letter["reason"])])
    file.close()
    written = json.loads((tmp_path / "dead.jsonl").read_text())
    assert letter == written | {"time": letter["time"]}
