"""docs/limits.md has the limits that the code defines."""

from __future__ import annotations

import re
from pathlib import Path

from saros_cluster.node import cluster_file
from saros_cluster.raft.node import ENTRY_BYTES_MAX
from saros_cluster.users import users
from saros_engine.aggregation.windows import WINDOWS_MAX
from saros_engine.analysis import scope
from saros_engine.extensions.triggers import TRIGGERS_MAX
from saros_engine.statements import ddl
from saros_engine.transforms import selectors
from saros_grammar.builders.expressions import EXPRESSION_HEIGHT_MAX
from saros_grammar.limits import NESTING_MAX, STATEMENT_CHARACTERS_MAX
from saros_grammar.syntax.literals import NUMBER_CHARACTERS_MAX
from saros_server.api import client_api, client_sessions, executions, operations
from saros_server.auth import passwords
from saros_server.console import chart
from saros_server.prometheus import remote_write
from saros_server.thrift.sessions import FRAME_BYTES_MAX
from saros_storage.base.paths import PATH_CHARACTERS_MAX
from saros_storage.loading.splitting import PARTITIONS_MAX
from saros_storage.log.record import PAYLOAD_BYTES_MAX
from saros_storage.mutation.tablet_codec import COLUMNS_MAX
from saros_storage.schema import catalogue, ttl_rules
from saros_wire.payload import MESSAGE_BYTES_MAX

PAGE = (Path(__file__).parents[2] / "docs" / "limits.md").read_text(encoding="utf-8")
#: The value of each limit by its description on the page, in the order of the page.
LIMITS = {
    "characters of a statement": STATEMENT_CHARACTERS_MAX,
    "levels of nesting": NESTING_MAX,
    "operators that depend on each other": EXPRESSION_HEIGHT_MAX,
    "characters of a number": NUMBER_CHARACTERS_MAX,
    "characters of a path": PATH_CHARACTERS_MAX,
    "combinations to which an expression": scope._COMBINATIONS_MAX,
    "windows of a `GROUP BY`": WINDOWS_MAX,
    "`k` of `top_k`": selectors._K_MAX,
    "columns of one write": COLUMNS_MAX,
    "bytes of one write": PAYLOAD_BYTES_MAX,
    "bytes of one message": MESSAGE_BYTES_MAX,
    "bytes of one entry": ENTRY_BYTES_MAX,
    "milliseconds of a TTL": ddl._TTL_MS_MAX,
    "paths with a TTL": ttl_rules.RULES_MAX,
    "entries of the catalogue": catalogue.ENTRIES_MAX,
    "characters of one such entry": catalogue.TEXT_MAX,
    "triggers": TRIGGERS_MAX,
    "users and roles": users.PRINCIPALS_MAX,
    "grants of a user": users.GRANTS_MAX,
    "API tokens of a user": users.TOKENS_OF_USER_MAX,
    "bytes of a password": passwords.BYTES_MAX,
    "sessions of a server": client_sessions.SESSIONS_MAX,
    "calls of clients": client_api.CALLS_MAX,
    "results that are not read": executions.RESULTS_MAX,
    "seconds without a call": client_sessions.IDLE_SECONDS,
    "seconds after a login": client_sessions.LIFE_SECONDS,
    "bytes of a frame": FRAME_BYTES_MAX,
    "series of one request": remote_write.SERIES_MAX,
    "bytes of a file that the console imports": operations.IMPORT_BYTES_MAX,
    "series of a chart": chart.SERIES_MAX,
    "partitions that one loaded TsFile": PARTITIONS_MAX,
    "slots of a cluster": cluster_file._SLOTS_MAX,
}


def test_the_page_has_the_numbers_of_the_code() -> None:
    rows = re.findall(r"^\| (?!limit)([^|]+) \| ([\d,]+) \|", PAGE, re.MULTILINE)
    shown = [(limit, number) for (text, number), limit in zip(rows, LIMITS, strict=True) if text.startswith(limit)]
    assert [(limit, f"{number:,}") for limit, number in LIMITS.items()] == shown
