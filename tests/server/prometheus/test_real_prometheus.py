"""A real Prometheus scrapes itself and writes to Saros; PromQL gives the same results over remote read."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from server.http.http_node import HttpNode, http_server, make_users
from server.secured import ROOT
from waiting import PATIENCE_S, wait_until

PROMETHEUS = shutil.which("prometheus")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROMETHEUS is None, reason="there is no prometheus"),
]
#: Queries that must give the same results over remote read and over Prometheus' own storage.
EXPRESSIONS = [
    "up",
    "prometheus_tsdb_head_samples_appended_total",
    'sum by (handler) (prometheus_http_requests_total{handler=~"/(metrics|-/ready|api/v1/query)"})',
    "rate(prometheus_tsdb_head_samples_appended_total[3s])",
    "sum(go_memstats_alloc_bytes) / count(up)",
    'count({__name__=~"go_.*", job!="none"})',
    'histogram_quantile(0.9, sum by (le) (prometheus_http_response_size_bytes_bucket{handler="/metrics"}))',
    'max_over_time(process_resident_memory_bytes{job="itself"}[4s])',
    'topk(3, scrape_samples_scraped{instance!~"nothing.*"})',
    'absent(up{job="other"})',
    "quantile_over_time(0.5, scrape_duration_seconds[5s])",
]


class Prometheus:
    """A Prometheus process whose storage is empty at first."""

    def __init__(self, folder: Path, configuration: str) -> None:
        folder.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        (folder / "prometheus.yml").write_text(configuration.replace("OWN_PORT", str(self.port)))
        words = [f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}"]
        words += [f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"]
        self._log = (folder / "log").open("w+")
        self.process = subprocess.Popen([PROMETHEUS or "", *words], stdout=self._log, stderr=self._log)

    def is_ready(self) -> bool:
        """Return whether the process answers."""
        assert self.process.poll() is None, self.log()
        try:
            return httpx.get(f"{self.url}/-/ready").status_code == 200
        except httpx.TransportError:
            return False

    def log(self) -> str:
        """Return the log of the process."""
        return Path(self._log.name).read_text()

    def ask(self, path: str, **parameters: Any) -> list[Any]:
        """Return the result of a query."""
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=parameters, timeout=PATIENCE_S).json()
        assert "success" == answer["status"], answer
        assert not answer.get("warnings"), answer
        return sorted(answer["data"]["result"], key=lambda one: sorted(one["metric"].items()))

    def stop(self) -> None:
        """End the process."""
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self._log.close()


@contextmanager
def prometheus(folder: Path, configuration: str) -> Iterator[Prometheus]:
    made = Prometheus(folder, configuration)
    try:
        wait_until(made.is_ready)
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpNode]:
    folder = tmp_path_factory.mktemp("real") / "data"
    make_users(folder)
    with http_server(folder, auth=("root", ROOT)) as made:
        yield made


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, node: HttpNode) -> Iterator[tuple[Prometheus, Prometheus, int]]:
    """Yield a Prometheus that writes to Saros, another that only reads from it, and the last complete second."""
    folder = tmp_path_factory.mktemp("prometheus")
    login = f"basic_auth: {{username: root, password: {ROOT}}}"
    writer_yml = f"""
global: {{scrape_interval: 1s}}
scrape_configs: [{{job_name: itself, static_configs: [{{targets: ["127.0.0.1:OWN_PORT"]}}]}}]
remote_write: [{{url: "{node.url}/api/v1/write", {login}, queue_config: {{batch_send_deadline: 200ms}}}}]
"""
    reader_yml = f'remote_read: [{{url: "{node.url}/api/v1/read", {login}, read_recent: true}}]\n'
    with prometheus(folder / "writer", writer_yml) as writer, prometheus(folder / "reader", reader_yml) as reader:
        wait_until(lambda: len(times_of_up(node)) >= 8)
        end = int(time.time())
        wait_until(lambda: times_of_up(node)[-1] > 1_000 * (end + 1))
        yield writer, reader, end


def times_of_up(node: HttpNode) -> list[int]:
    """Return the times, in ms, at which Prometheus scraped itself, as far as they are in Saros."""
    answer = node.client.post("/rest/v2/query", json={"sql": "select value from root.prometheus.up.*"})
    return answer.json()["timestamps"] or []


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_promql_over_saros_gives_the_same_numbers(pair: tuple[Prometheus, Prometheus, int], expression: str) -> None:
    writer, reader, end = pair
    for path, parameters in (
        ("query", {"time": end}),
        ("query_range", {"start": end - 6, "end": end, "step": "1s"}),
    ):
        own = writer.ask(path, query=expression, **parameters)
        assert own, expression
        assert own == reader.ask(path, query=expression, **parameters)


def test_nothing_was_lost_or_refused(pair: tuple[Prometheus, Prometheus, int]) -> None:
    writer, _, end = pair
    for name in ("failed", "retried", "dropped"):
        (found,) = writer.ask("query", query=f"prometheus_remote_storage_samples_{name}_total", time=end)
        assert "0" == found["value"][1], (name, writer.log())
