"""An adapter with which the common workload in `../shared/peerbench` measures Saros. The goals for Saros refer to it.

    SAROS_DURABILITY=fsync python benchmarks/peerbench_adapter.py --peer saros --profile small --phases bulk,query

    saros            a server in a separate process, one client on the same machine
    saros-embedded   in the client's process

The arguments are those of the workload's `bench.py`, and the data is in the folder PEERBENCH_ROOT. `SAROS_DURABILITY`
sets the database's durability (default: fsync), and is recorded with the results. SAROS_PEERBENCH_ALIGNED=no creates
devices that are not aligned. Only the public driver is used, and the workload checks every answer against NumPy.
"""

from __future__ import annotations

import atexit
import os
import runpy
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

import saros
from saros_server.process.server_file import serving

WORKLOAD = Path(__file__).resolve().parents[2] / "shared" / "peerbench"
sys.path.insert(0, str(WORKLOAD))

import adapters  # noqa: E402 (the module is next to the repository)
from adapters.base import Adapter  # noqa: E402

TYPES = {"d": "DOUBLE", "i": "INT64", "b": "BOOLEAN", "t": "TEXT"}
READ_LAST = {"DOUBLE": float, "INT64": int, "BOOLEAN": "true".__eq__, "TEXT": str}
PORT = 16667
TICKS = os.sysconf("SC_CLK_TCK")


class Embedded(Adapter):
    """Saros embedded in the client's process."""

    name = "saros-embedded"
    bulk_rows = 1_000_000
    durability = os.environ.get("SAROS_DURABILITY", "fsync")
    aligned = os.environ.get("SAROS_PEERBENCH_ALIGNED", "yes") == "yes"

    @property
    def folder(self):
        return os.path.join(self.dir, "data")

    def start(self):
        self.reconnect()

    def connect(self):
        """Return a new connection."""
        return saros.connect(self.folder, timestamps="epoch", options={"durability": self.durability})

    def reconnect(self):
        self.connection = self.connect()
        self.cursor = self.connection.cursor()
        self.writers = {}

    def stop(self):
        self.connection.close()

    def create(self):
        """Load everything that is otherwise loaded at first use, which should not be measured; create the devices."""
        sample = next(self.w.batches(10, self.kinds))
        self.connection.insert("root.first.d", sample.times, sample.cols, aligned=self.aligned)
        self.cursor.execute("flush")
        self.cursor.execute("select * from root.first.d").fetchall()
        self.cursor.execute("drop database root.first")
        listed = ", ".join(f"{name} {TYPES[kind]}" for name, kind in self.w.schema)
        for device in map(self.device, range(self.w.devices)):
            if self.aligned:
                self.cursor.execute(f"create aligned timeseries {device}({listed})")
                continue
            for name, kind in self.w.schema:
                self.cursor.execute(f"create timeseries {device}.{name} {TYPES[kind]}")

    def device(self, number):
        return f"root.g{self.w.group_of(number)}.d{number}"

    def disk_bytes(self):
        """Return the bytes of data and index files; log segments, which are kept for reuse, are reported separately."""
        total = 0
        for file in Path(self.folder).rglob("*"):
            if "log" not in file.parts:
                with suppress(FileNotFoundError):  # a temporary file that was renamed in the meantime
                    total += file.stat().st_blocks * 512 if file.is_file() else 0
        return total

    # ------------------------------------------------------------------ writing

    def send(self, payload, conn=None):
        connection = conn or self.connection
        if len(payload) == 1:
            batch = payload[0]
            connection.insert(self.device(batch.device), batch.times, batch.cols)
            return
        writer = self.writers.get(connection)
        if writer is None:
            writer = self.writers[connection] = connection.bulk_writer()
        for batch in payload:
            writer.add(self.device(batch.device), batch.times, batch.cols)
        writer.flush()

    def flush(self):
        self.cursor.execute("flush")

    def settle(self):
        self.cursor.execute("merge")

    # ------------------------------------------------------------------ reading

    def rows(self, text, *values):
        """Return a device's times and columns; the columns are named without the device's path."""
        columns = self.cursor.execute(text, values).fetch_numpy()
        times = columns.pop("Time")
        return times, {path.rpartition(".")[2]: column for path, column in columns.items()}

    def q1(self, dev, s, t):
        return self.cursor.execute(f"select {s} from {self.device(dev)} where time = ?", (t,)).fetchone()[1]

    def q2(self, dev, a, b):
        return self.rows(f"select * from {self.device(dev)} where time >= ? and time < ?", a, b)

    def q3(self, dev, s, a, b, thr):
        text = f"select {s} from {self.device(dev)} where time >= ? and time < ? and {s} > ?"
        times, columns = self.rows(text, a, b, thr)
        return times, columns[s]

    def q4(self, dev, s, a, b):
        text = f"select count({s}), avg({s}), max_value({s}) from {self.device(dev)} where time >= ? and time < ?"
        return self.cursor.execute(text, (a, b)).fetchone()

    def q5(self, dev, s, a, b, thr):
        text = (
            f"select count({s}), avg({s}), max_value({s}) from {self.device(dev)} "
            f"where time >= ? and time < ? and {s} > ?"
        )
        return self.cursor.execute(text, (a, b, thr)).fetchone()

    def windows(self, functions, source, devs, a, b, win):
        """Return an array whose dimensions are series, functions and windows."""
        text = f"select {functions} from {source} group by ([{a}, {b}), {win}ms)"
        columns = self.cursor.execute(text).fetch_numpy()
        named = functions.split(", ")
        return np.array(
            [[columns[part.replace("(", f"({self.device(dev)}.")] for part in named] for dev in devs], dtype=np.float64
        )

    def q6a(self, devs, s, a, b, win):
        return self.windows(f"avg({s})", self.device(devs[0]), devs, a, b, win)[:, 0]

    def q6b(self, devs, s, a, b, win):
        return self.windows(f"avg({s})", "root.**", devs, a, b, win)[:, 0]

    def q7(self):
        answer = {}
        table = self.cursor.execute("select last * from root.**").fetch_numpy()
        for moment, path, value, kind in zip(*table.values(), strict=True):
            _, _, device, name = path.split(".")
            answer.setdefault(int(device[1:]), (int(moment), {}))[1][name] = READ_LAST[kind](value)
        return answer

    def q8(self, devs, s, a, b, win):
        source = f"root.g{self.w.group_of(devs[0])}.*"
        return self.windows(f"avg({s}), min_value({s}), max_value({s})", source, devs, a, b, win)

    def q9(self, dev, t, n):
        return self.rows(f"select * from {self.device(dev)} where time < ? order by time desc limit {n}", t)

    def q10(self, dev):
        return self.rows(f"select * from {self.device(dev)}")


class Served(Embedded):
    """Saros as a server on the same machine."""

    name = "saros"
    network = True

    def start(self):
        environment = {**os.environ, "SAROS_DURABILITY": self.durability}
        command = [sys.executable, "-m", "saros_shell", "start", "--foreground", "--data", self.folder]
        self.spawn([*command, "--port", str(PORT)], env=environment, stdin=subprocess.DEVNULL)
        atexit.register(self.proc.kill)
        while serving(self.folder) is None:
            if self.proc.poll() is not None:
                raise RuntimeError(f"the server did not start: see {self.dir}/server.log")
            time.sleep(0.05)
        self.reconnect()

    def connect(self):
        return saros.connect(f"saros://127.0.0.1:{PORT}", timestamps="epoch")

    def stop(self):
        self.connection.close()
        Adapter.stop(self)

    def server_cpu(self):
        """Return the processor time of the server's process, which has no children."""
        fields = Path(f"/proc/{self.proc.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / TICKS


def main():
    sys.modules["adapters.saros_"] = sys.modules[__name__]
    adapters.REGISTRY.update({"saros": ("saros_", "Served"), "saros-embedded": ("saros_", "Embedded")})
    runpy.run_path(str(WORKLOAD / "bench.py"), run_name="__main__")


if __name__ == "__main__":
    main()
