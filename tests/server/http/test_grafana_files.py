"""Grafana's provisioning files can be read. The metrics that they name exist, and the queries in them run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from server.http.http_node import http_server

from saros_server.http.metrics import METRICS

FOLDER = Path(__file__).parents[3] / "deploy" / "grafana"
DASHBOARDS = sorted((FOLDER / "dashboards").glob("*.json"))


def test_dashboards_use_the_data_sources() -> None:
    sources = yaml.safe_load((FOLDER / "provisioning" / "datasources" / "saros.yaml").read_text())["datasources"]
    known = {(source["type"], source["uid"]) for source in sources}
    used = {
        (target["datasource"]["type"], target["datasource"]["uid"])
        for path in DASHBOARDS
        for panel in json.loads(path.read_text())["panels"]
        for target in panel["targets"]
    }
    assert known == used


def test_metrics_exist() -> None:
    text = (FOLDER / "dashboards" / "server.json").read_text()
    names = {name.removesuffix("_bucket").removesuffix("_total") for name in re.findall(r"saros_\w+", text)}
    assert set() == names - set(METRICS)


def test_the_panels_of_data_run(tmp_path: Path) -> None:
    dashboard = json.loads((FOLDER / "dashboards" / "plant.json").read_text())
    with http_server(tmp_path / "data") as node:
        node.written("insert into root.plant.pump1(time, x) values (1000, 1), (2000, 3)")
        (variable,) = dashboard["templating"]["list"]
        (path,) = node.client.post("/grafana/v1/variable", json={"sql": variable["query"]}).json()
        (target,) = dashboard["panels"][0]["targets"]
        text = json.dumps({**target, "startTime": 0, "endTime": 60_000})
        for name, value in (("$path", path), ("$__from", "0"), ("$__to", "60000")):
            text = text.replace(name, value)
        answer = node.client.post("/grafana/v1/query/expression", content=text).json()
    assert ([0], [[2.0]]) == (answer["timestamps"], answer["values"])


@pytest.mark.parametrize("path", ["prometheus.yml", "provisioning/dashboards/saros.yaml"])
def test_other_files_are_read(path: str) -> None:
    assert isinstance(yaml.safe_load((FOLDER / path).read_text()), dict)
