"""A damaged message of IoTDB's session protocol is answered or refused, or it ends the connection."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path

import pytest
from server.thrift_client import ThriftServer
from server.thrift_mutations import Mutations

#: The number of damaged messages that each run of the test suite sends.
MESSAGES = 3_000


@pytest.mark.slow
def test_damaged_messages_do_no_harm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = ThriftServer(tmp_path, authentication=False)
    try:
        server.api._own.execute("insert into root.m.d(time, s) values (1, 1)", (), None).close()
        mutations = Mutations(server.api, seed=1)
        with caplog.at_level(logging.ERROR):
            outcomes = Counter(mutations.run_one() for _ in range(MESSAGES))
        assert [] == [record.exc_text or record.getMessage() for record in caplog.records]
        assert {"answered", "refused", "ended", "closed by the client"} <= set(outcomes)
        assert (0, 0) == (server.api.sessions, server.api.node.engine.open_queries)
    finally:
        server.close()
