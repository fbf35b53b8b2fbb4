"""`saros mqtt` reports wrong arguments before it connects to anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from self_signed import self_signed

from saros_shell.mqtt import command
from saros_shell.mqtt.bridge import Counts

BROKER = ["--broker", "mqtt://127.0.0.1:1"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--topic", "a/+"], "0 --paths for 1 --topic: give it once, or once for each --topic"),
        (["--topic", "a", "--topic", "b", "--topic", "c", "--path", "root.a", "--path", "root.b"], "2 --paths for 3"),
        (["--topic", "a/+", "--path", "root.{x}"], "{x} is not a field of --topic a/+"),
        (["--topic", "a+", "--path", "root.x"], "level 'a+' is neither a plain text"),
        (["--topic", "a", "--path", "root.x", "--format", "iotdb-json"], "omit --path"),
        (["--topic", "a", "--path", "root.x", "--format", "number"], "needs a device and a measurement"),
        (["--topic", "a", "--path", "root"], "needs a device"),
        (["--topic", "a", "--path", "root.x.y", "--format", "number", "--time-key", "t"], "--time-key belongs to"),
        (["--topic", "a", "--path", "root.x.y", "--format", "line"], "needs a database, such as root.plant"),
        (["--topic", "#", "--path", "root.{1}", "--format", "line"], "needs a database"),
        (["--topic", "a", "--path", "root.x", "--format", "line", "--aligned"], "are always aligned; omit it"),
        (["--topic", "a", "--path", "root.x", "--tls-ca", "ca.pem"], "need --broker mqtts://"),
    ],
)
def test_wrong_use(arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == command.main([*BROKER, *arguments])
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize("in_flight", ["0", "65536", "x"])
def test_a_wrong_number_of_messages_in_flight(in_flight: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main([*BROKER, "--topic", "a", "--path", "root.a", "--in-flight", in_flight])
    assert 2 == caught.value.code
    assert "--in-flight" in capsys.readouterr().err


def test_files_of_tls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, _ = self_signed(tmp_path)
    arguments = ["--broker", "mqtts://127.0.0.1:1", "--topic", "a", "--path", "root.a"]
    assert 2 == command.main([*arguments, "--tls-ca", str(tmp_path / "none.pem")])
    assert f"saros mqtt: {tmp_path}/none.pem: No such file or directory\n" == capsys.readouterr().err
    assert 2 == command.main([*arguments, "--tls-certificate", str(key)])
    assert f"{key}: not PEM files of a certificate and its key" in capsys.readouterr().err
    assert 2 == command.main([*arguments, "--tls-key", str(key)])
    assert "--tls-key needs --tls-certificate" in capsys.readouterr().err


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command, "find_spec", lambda _: None)
    assert 2 == command.main([*BROKER, "--topic", "a", "--path", "root.a"])
    assert "saros mqtt: this needs the extra `mqtt`: pip install 'saros[mqtt]'\n" == capsys.readouterr().err


def test_a_database_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_text("")
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    assert 1 == command.main([*BROKER, "--topic", "a", "--path", "root.a"])
    assert 1 == command.main([*BROKER, "--topic", "a", "--path", "root.a", "--dead-letter", "none/dead"])


def test_counts_are_told_every_minute(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(command.time, "monotonic", lambda: now)
    display = command._Display(quiet=False)
    counts = Counts(messages=1, points=2, refused=0)
    for seconds in (1.0, 59.0, 60.0, 61.0, 121.0):  # at 121 s, there are no new messages to report
        now = seconds
        display.show(counts)
    assert "saros mqtt: 1 message, 2 points, 0 refused\n" == capsys.readouterr().err
