"""Devices of InfluxDB's line protocol on a cluster: all nodes use one order of tags, whichever node writes first."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from system.cluster_fixture import running_servers

from saros_engine.base.session_context import SessionContext
from saros_engine.catalog.tag_keys import tag_keys
from saros_server.api.session import SessionLines
from saros_server.config.device_template import DEFAULT_TEMPLATE, DeviceTemplate
from saros_server.line_protocol.devices import DeviceMap
from saros_server.line_protocol.lines import SeriesKey
from saros_server.server import Server
from saros_storage.base.write_request import UNNUMBERED

pytestmark = pytest.mark.slow

ROUNDS = 6
#: For each node, the tags of the series that it writes first.
TAGS = [("a", "x", "b"), ("b", "y", "c"), ("c", "z", "a")]


def devices_of(server: Server) -> DeviceMap:
    session = SessionLines(server.api.node, SessionContext(), UNNUMBERED)
    return DeviceMap(DeviceTemplate.of(DEFAULT_TEMPLATE), "plant", session)


def series(measurement: str, keys: Sequence[str]) -> SeriesKey:
    return SeriesKey(measurement, tuple((key, f"v{key}") for key in keys))


def test_nodes_that_write_first_at_the_same_time_agree(tmp_path: Path) -> None:
    with running_servers(tmp_path, nodes=3, replicas=3) as servers:
        for number in range(ROUNDS):
            measurement, barrier = f"m{number}", Barrier(len(servers))

            def write(place: int, measurement: str = measurement, barrier: Barrier = barrier) -> str | Exception:
                devices = devices_of(servers[place])
                barrier.wait()
                return devices.device(series(measurement, TAGS[place]))

            with ThreadPoolExecutor(len(servers)) as pool:
                written = list(pool.map(write, range(len(servers))))
            for server in servers:
                assert written == [devices_of(server).device(series(measurement, keys)) for keys in TAGS]
            (first, *others) = [
                tag_keys(server.api.node.store.schema, f"root.plant.{measurement}") for server in servers
            ]
            assert sorted(first) == ["a", "b", "c", "x", "y", "z"]
            assert all(list(first[: len(other)]) == list(other) for other in others)
            assert len({str(device) for device in written}) == len(written)
