"""Statements of IoTDB and other SQL databases that Saros does not support, with their replacements.

The grammar does not contain them. A text that does not parse is looked up here by its first words, so that a pasted
script gives the error that a statement is unsupported, not that it is misspelt. The first row whose pattern matches
applies. A text with characters that occur in no statement counts as misspelt.

Pure: any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Any

from saros_grammar.generated.Sql import Sql

#: The number of words, from the beginning, that are matched.
_WORDS_MAX = 40
_JOINS = "JOIN: series of several devices stand side by side by time, as in SELECT a.x, b.x FROM root.plant"
_TABLE: tuple[tuple[str, str], ...] = (
    (
        r"(create|alter|drop|delete|show|start|stop) (pipes?|pipeplugins?|pipeserver|pipesinks?|pipesinktype)",
        "pipes: saros sync sends what is written to another server",
    ),
    (r"(create|drop|delete|show) (topics?|subscriptions?)", "subscriptions: a trigger is told of what is written"),
    (r"(create|drop|delete|show|load|unload|show loaded) models?|call inference|show ai_devices", "models"),
    (r"(show|remove) ainodes?", "AI nodes"),
    (r"(create|drop|delete|start|stop|show) services?", "services"),
    (r"(start|stop) trigger", "START and STOP of triggers: DROP TRIGGER, and CREATE it again"),
    (
        r"create (stateful |stateless )?trigger \S+ (before|after) delete",
        "triggers for DELETE: there are those for INSERT",
    ),
    (r"(start|stop) repair data|repair data partition table", "REPAIR DATA: saros verify checks the files"),
    (r"(drop|delete) partition", "DELETE PARTITION: DELETE FROM ... WHERE time deletes what is in it"),
    (r"(set|load) configuration", "configuration by statements: saros.toml, and a restart"),
    (r"show (all )?configurations?", "SHOW CONFIGURATION: SHOW VARIABLES has some of it, saros config FOLDER all"),
    (r"show cluster parameters", "SHOW CLUSTER PARAMETERS: SHOW VARIABLES has them"),
    (r"load balance", "LOAD BALANCE: REBALANCE CLUSTER spreads what the nodes keep"),
    (r"show migrations", "SHOW MIGRATIONS: SHOW CLUSTER CHANGE has what moves"),
    (r"reconstruct region", "RECONSTRUCT REGION: a replica that lacks something gets it by itself"),
    (r"extend region", "EXTEND REGION: MIGRATE REGION moves a replica"),
    (r"remove regions?", "REMOVE REGION: MIGRATE REGION moves a replica"),
    (r"remove confignode", "REMOVE CONFIGNODE: REMOVE NODE takes a node out of everything"),
    (r"verify connection", "VERIFY CONNECTION: SHOW CLUSTER has the nodes that answer"),
    (
        r"show (data |schema )?(regionid|seriesslotid)|(show|count) (timeslotid|timepartition)",
        "slots by statements: SHOW REGIONS and SHOW PARTITIONS have what there is",
    ),
    (
        r"show (flush|lock|merge) info|show query resource",
        "SHOW ... INFO: SHOW PARTITIONS, SHOW FILES, and the metrics",
    ),
    (r"show (users?|roles?)", "SHOW USER and SHOW ROLE: LIST USER, LIST ROLE"),
    (r"(set|show) (space|throttle) quota", "quotas"),
    (r"alter user .+ rename to", "other names of users: CREATE USER makes one of another name"),
    (r"alter user .+ account unlock", "ACCOUNT UNLOCK: who failed to log in may try again after a while"),
    (r"(grant|revoke) watermark_embedding", "watermarks"),
    (r"(remove|unload) (?=['\"])|load timeseries", "REMOVE and UNLOAD of files: DELETE FROM, saros export"),
    (r"settle", "SETTLE: FULL MERGE takes what was deleted out of the files"),
    (r"debug", "DEBUG: EXPLAIN ANALYZE has what was read"),
    (r"tracing", "TRACING: EXPLAIN ANALYZE has what was done"),
    (r"create snapshot for schema", "CREATE SNAPSHOT: saros backup keeps the schema, too"),
    (r"(show|count) tables?", "tables: SHOW DEVICES lists devices, SHOW TIMESERIES their series"),
    (r"desc|describe|show columns", "DESCRIBE: SHOW TIMESERIES root.a.b.** lists the series of a device"),
    (r"create table", "tables: series come into being when they are written to, or by CREATE TIMESERIES"),
    (
        r"drop table|truncate",
        "tables: DROP TIMESERIES root.a.b.** drops series, DELETE FROM root.a.b.** their points",
    ),
    (r"update", "UPDATE: INSERT of the same time takes the place of a value"),
    (r"use", "USE: a path is always in full, from root"),
    (r"select distinct", "SELECT DISTINCT: the function distinct(x) gives each value of a series once"),
    (r"select .* from \S+( \. \S+)* ((inner|left|right|full|outer|cross) )*join", _JOINS),
    (r"select .* disable align", "DISABLE ALIGN: one SELECT for each series has just its own times"),
    (r"create or replace view|alter table", "the table model"),
)
_PATTERNS = tuple((re.compile(rf"(?:{words})(?!\w)", re.DOTALL), what) for words, what in _TABLE)


def unsupported_statement(tokens: Iterable[Any]) -> str | None:
    """Return the unsupported feature that a text which does not parse asks for; None if it is misspelt."""
    words = list(islice((token for token in tokens if token.channel == 0), _WORDS_MAX))
    if any(token.type == Sql.UNRECOGNIZED for token in words):
        return None
    text = " ".join(str(token.text).lower() for token in words)
    return next((what for pattern, what in _PATTERNS if pattern.match(text)), None)
