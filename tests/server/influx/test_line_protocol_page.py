"""The examples of docs/line-protocol.md: each command prints the output below it; clients, configurations work."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from server.http.http_node import HttpNode, http_server
from server.http.pages import PORT, commands, page, pieces, run

PAGE = page("line-protocol.md")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[HttpNode]:
    with http_server(tmp_path / "data") as made:
        yield made


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_commands_answer_as_shown(node: HttpNode, tmp_path: Path) -> None:
    found = commands(PAGE.partition("## Requests")[0])
    assert 3 == len(found)
    for command, output in found:
        assert output == run(command, node, tmp_path), command


def test_the_clients_write(node: HttpNode) -> None:
    host, port = PORT.split(":")
    for text in pieces(PAGE, "python"):
        exec(text.replace(port, str(node.service.port)).replace(host, "127.0.0.1"), {})
    answer = node.client.get("/query", params={"sql": "select temperature from root.plant.weather.* align by device"})
    expected = [
        '"Time","Device","temperature"',
        '"2023-11-14T22:13:20.000Z","root.plant.weather.Berlin",20.5',
        '"2023-11-14T22:13:20.000Z","root.plant.weather.Rome",25.5',
    ]
    assert expected == answer.text.splitlines()


def test_telegraf_writes_with_its_configuration(node: HttpNode) -> None:
    (text,) = pieces(PAGE, "toml")
    (output,) = tomllib.loads(text)["outputs"]["influxdb"]
    (url,) = output["urls"]
    url = url.replace(PORT, node.url.removeprefix("http://"))
    headers = {"user-agent": "Telegraf/1.30.0"}
    create = {"q": f'CREATE DATABASE "{output["database"]}"'}
    assert 200 == node.client.post(f"{url}/query", data=create, headers=headers).status_code
    line = b"cpu,cpu=cpu0,host=vm usage_idle=97.5 1700000000000000000\n"
    answer = node.client.post(f"{url}/write", params={"db": output["database"]}, content=line, headers=headers)
    assert 204 == answer.status_code
    found = node.client.get("/query", params={"sql": "select usage_idle from root.telegraf.cpu.cpu0.vm"})
    assert '"2023-11-14T22:13:20.000Z",97.5' == found.text.splitlines()[1]
