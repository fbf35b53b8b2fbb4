from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from saros_shell.mqtt.dead_letters import DeadLetter, DeadLetterFile


def lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_letter_has_topic_payload_and_reason(tmp_path: Path) -> None:
    file = DeadLetterFile(str(tmp_path / "dead.jsonl"), 1_000)
    file.append([DeadLetter("a/b", b"x", "bad"), DeadLetter("a/c", b"\xff", "worse")])
    file.close()
    first, second = lines(tmp_path / "dead.jsonl")
    assert first.pop("time") <= second.pop("time")
    assert {"topic": "a/b", "payload": "x", "reason": "bad"} == first
    assert {"topic": "a/c", "payload_base64": "/w==", "reason": "worse"} == second
    assert 0o600 == os.stat(tmp_path / "dead.jsonl").st_mode & 0o777


def test_the_file_is_continued(tmp_path: Path) -> None:
    for number in range(2):
        file = DeadLetterFile(str(tmp_path / "dead.jsonl"), 1_000)
        file.append([DeadLetter(str(number), b"", "")])
        file.close()
    assert ["0", "1"] == [line["topic"] for line in lines(tmp_path / "dead.jsonl")]


def test_it_is_rotated_and_bounded(tmp_path: Path) -> None:
    file = DeadLetterFile(str(tmp_path / "dead.jsonl"), 300)
    for number in range(50):
        file.append([DeadLetter(str(number), b"x" * 50, "bad")])
    file.close()
    kept = lines(tmp_path / "dead.jsonl.1") + lines(tmp_path / "dead.jsonl")
    assert [str(number) for number in range(50)][-len(kept) :] == [line["topic"] for line in kept]
    assert {"dead.jsonl", "dead.jsonl.1"} == set(os.listdir(tmp_path))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 1_000


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        DeadLetterFile(str(tmp_path / "none" / "dead.jsonl"), 300)
