"""InfluxDB's line protocol: points per second of the parser alone, and of Saros and InfluxDB over one HTTP connection.

    python benchmarks/bench_line_protocol.py [--points N] [--digits D]

A request has 5,000 lines of ten hosts in turn; each line has ten fields. `--digits`: the number of digits of each value
(at most 17, which distinguish all doubles). All requests write new points. Two servers run on this machine, each in a
new folder: Saros, which answers after an fsync (`durability = "fsync"`, the default), and InfluxDB 1.x with the same
guarantee (`wal-fsync-delay = "0s"`), if `influxd` is installed. Other load on the machine changes the points per
second, but hardly the points per processor second.
"""

from __future__ import annotations

import argparse
import http.client
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from free_ports import free_ports
from own_server import own_server
from system.local_cluster import processor_s_of
from waiting import wait_until

from saros_server.line_protocol.lines import TimeScale, chunks

HOSTS, FIELDS, LINES = 10, 10, 5_000
WARM_UP_REQUESTS = 4
START_NS = 1_700_000_000_000_000_000
_INFLUXD = "influxd"
#: Seconds to wait after the start of a server, while it compiles its kernels.
SETTLE_S = 10.0
_CONFIGURATION = """
reporting-disabled = true
bind-address = "127.0.0.1:{rpc}"
[meta]
  dir = "{folder}/meta"
[data]
  dir = "{folder}/data"
  wal-dir = "{folder}/wal"
  wal-fsync-delay = "0s"
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false
[logging]
  level = "error"
"""


def main() -> None:
    """Run all measurements, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=4_000_000)
    parser.add_argument("--digits", type=int, default=8)
    options = parser.parse_args()
    requests = WARM_UP_REQUESTS + max(1, options.points // (LINES * FIELDS))
    bodies = [body(number, options.digits) for number in range(requests)]
    print(f"{'parser alone':22s}{'':14s}{processor_rate(parse, bodies) / 1e6:8.2f} M points/s of processor time")
    with saros() as (port, process):
        ours = measure_http("Saros", port, process, bodies)
    if shutil.which(_INFLUXD) is None:
        print(f"{_INFLUXD} is not installed: no comparison with InfluxDB")
        return
    with influxdb() as (port, process):
        theirs = measure_http("InfluxDB 1.x", port, process, bodies)
    print(f"{'ratio':22s}{ours[0] / theirs[0]:8.2f}      {ours[1] / theirs[1]:8.2f}")


def body(number: int, digits: int) -> bytes:
    """Return the lines of a request."""
    values = random.Random(number)
    lines = []
    for line in range(LINES):
        fields = ",".join(f"usage_{k}={100 * values.random():.{digits - 2}f}" for k in range(FIELDS))
        at = START_NS + (number * LINES + line) // HOSTS * 1_000_000
        lines.append(f"cpu,host=host_{line % HOSTS},region=eu-west-1 {fields} {at}\n")
    return "".join(lines).encode()


def parse(text: bytes) -> None:
    """Parse lines into columns of devices."""
    for chunk in chunks(text):
        devices = [".".join(("root.d.cpu", *(value for _, value in series.tags))) for series in chunk.series if series]
        batches = chunk.batches(devices, TimeScale(1, 1_000_000, 0))
        assert len(batches) == HOSTS


def processor_rate(run: Callable[[bytes], None], bodies: Sequence[bytes]) -> float:
    """Return the points parsed per processor second, over all bodies except the first `WARM_UP_REQUESTS` bodies."""
    for text in bodies[:WARM_UP_REQUESTS]:
        run(text)
    began = time.thread_time()
    for text in bodies[WARM_UP_REQUESTS:]:
        run(text)
    return points_of(bodies) / (time.thread_time() - began)


def points_of(bodies: Sequence[bytes]) -> int:
    """Return the number of points in the measured bodies."""
    return (len(bodies) - WARM_UP_REQUESTS) * LINES * FIELDS


def measure_http(name: str, port: int, process: int, bodies: Sequence[bytes]) -> tuple[float, float]:
    """Print and return the points per second, and per second of processor time, of requests on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def send(text: bytes) -> None:
        connection.request("POST", "/write?db=bench", text)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 204, answer.status

    connection.request("POST", "/query?q=CREATE%20DATABASE%20bench")
    connection.getresponse().read()
    for text in bodies[:WARM_UP_REQUESTS]:
        send(text)
    began, began_cpu = time.perf_counter(), processor_s_of(process)
    for text in bodies[WARM_UP_REQUESTS:]:
        send(text)
    rate = points_of(bodies) / (time.perf_counter() - began)
    cpu_rate = points_of(bodies) / (processor_s_of(process) - began_cpu)
    connection.close()
    print(f"{name:22s}{rate / 1e6:8.2f} M/s, {cpu_rate / 1e6:8.2f} M points/s of processor time", flush=True)
    return rate, cpu_rate


@contextmanager
def saros() -> Iterator[tuple[int, int]]:
    """Run Saros on a new folder; yield its HTTP port and its process id."""
    with own_server(http=True) as server:
        time.sleep(SETTLE_S)
        yield server.http_port, server.process


@contextmanager
def influxdb() -> Iterator[tuple[int, int]]:
    """Run InfluxDB in a new folder; yield its HTTP port and its process id."""
    port, rpc = free_ports(2)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "influxdb.conf")
        file.write_text(_CONFIGURATION.format(folder=folder, port=port, rpc=rpc))
        process = subprocess.Popen([_INFLUXD, "-config", file], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: answers(port))
            yield port, process.pid
        finally:
            process.terminate()
            process.wait()


def answers(port: int) -> bool:
    """Return whether a server answers."""
    with suppress(OSError):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/ping")
        return connection.getresponse().status == 204
    return False


if __name__ == "__main__":
    main()
