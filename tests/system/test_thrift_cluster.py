"""IoTDB's session protocol on the nodes of a cluster: writes through any node, and the leader of a device's group."""

from __future__ import annotations

import struct
from contextlib import ExitStack
from pathlib import Path

import pytest
from server.thrift_client import ThriftClient
from system.cluster_fixture import running_servers

from saros_server.thrift.structs import EndPoint, InsertTablet, Status

pytestmark = pytest.mark.slow
DOUBLE = 4


def tablet(time: int) -> InsertTablet:
    return InsertTablet(1, "root.t.d", ["x"], struct.pack(">d", time) + b"\0", struct.pack(">q", time), [DOUBLE], 1)


def test_a_write_names_the_node_that_leads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAROS_DURABILITY", "os")
    with running_servers(tmp_path, 3, 3) as servers, ExitStack() as stack:
        clients = {server.address: stack.enter_context(ThriftClient(server.address)) for server in servers}
        for client in clients.values():
            client.open()
        answers = {}
        for time, (address, client) in enumerate(clients.items()):
            client.call("insertTablet", tablet(time), Status)  # with this call, the node learns the leader
            answers[address] = client.call("insertTablet", tablet(time), Status)
        leaders = [address for address, status in answers.items() if status == Status()]
        assert 1 == len(leaders)
        host, _, port = leaders[0].rpartition(":")
        redirected = Status(400, redirect=EndPoint(host, int(port)))
        assert {address: Status() if address in leaders else redirected for address in clients} == answers
        for client in clients.values():
            assert [(0, 0.0), (1, 1.0), (2, 2.0)] == client.execute("select x from root.t.d").all()
        nodes = clients[leaders[0]].execute("SHOW DATANODES")
        host_at, port_at = (nodes.answer.columns.index(name) for name in ("RpcAddress", "RpcPort"))
        assert set(clients) == {f"{row[host_at].decode()}:{row[port_at]}" for row in nodes.all()}
