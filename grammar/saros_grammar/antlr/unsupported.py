"""Statements of IoTDB and of other SQL databases that Saros does not support, and their replacements in Saros.

The grammar does not contain these statements. A text that does not parse is looked up here by its first words. If it is
found, the error says that the statement is unsupported, not that it is misspelt. The first matching row of the table
applies. A text with a character that occurs in no statement counts as misspelt.

Pure: any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Any

from saros_grammar.generated.Sql import Sql

#: The number of words that are matched at the beginning of a text.
_WORDS_MAX = 40
_JOINS = "JOIN: SELECT aligns series of several devices by time, as in SELECT a.x, b.x FROM root.plant"
_TABLE: tuple[tuple[str, str], ...] = (
    (
        r"(create|alter|drop|delete|show|start|stop) (pipes?|pipeplugins?|pipeserver|pipesinks?|pipesinktype)",
        "pipes: use saros sync to send data to another server",
    ),
    (
        r"(create|drop|delete|show) (topics?|subscriptions?)",
        "subscriptions: use a trigger, which is called for each write",
    ),
    (r"(create|drop|delete|show|load|unload|show loaded) models?|call inference|show ai_devices", "models"),
    (r"(show|remove) ainodes?", "AI nodes"),
    (r"(create|drop|delete|start|stop|show) services?", "services"),
    (r"(start|stop) trigger", "START TRIGGER and STOP TRIGGER: drop the trigger, and create it again"),
    (
        r"create (stateful |stateless )?trigger \S+ (before|after) delete",
        "triggers on DELETE: only INSERT fires triggers",
    ),
    (r"(start|stop) repair data|repair data partition table", "REPAIR DATA: use saros verify to check the files"),
    (r"(drop|delete) partition", "DELETE PARTITION: use DELETE FROM with a range of time"),
    (r"show all configuration", "SHOW ALL CONFIGURATION: SHOW CONFIGURATION lists all options"),
    (r"show cluster parameters", "SHOW CLUSTER PARAMETERS: use SHOW VARIABLES"),
    (r"load balance", "LOAD BALANCE: use REBALANCE CLUSTER"),
    (r"show migrations", "SHOW MIGRATIONS: use SHOW CLUSTER CHANGE"),
    (r"reconstruct region", "RECONSTRUCT REGION: replicas fetch missing data by themselves"),
    (r"extend region", "EXTEND REGION: use MIGRATE REGION to move a replica"),
    (r"remove regions?", "REMOVE REGION: use MIGRATE REGION to move a replica"),
    (r"remove confignode", "REMOVE CONFIGNODE: use REMOVE NODE, which removes a node from all groups"),
    (r"verify connection", "VERIFY CONNECTION: use SHOW CLUSTER to see which nodes respond"),
    (
        r"show (data |schema )?(regionid|seriesslotid)|(show|count) (timeslotid|timepartition)",
        "statements about slots: use SHOW REGIONS and SHOW PARTITIONS",
    ),
    (
        r"show (flush|lock|merge) info|show query resource",
        "SHOW ... INFO: use SHOW PARTITIONS, SHOW FILES, or the metrics",
    ),
    (r"show (users?|roles?)", "SHOW USER and SHOW ROLE: use LIST USER and LIST ROLE"),
    (r"(set|show) (space|throttle) quota", "quotas"),
    (r"alter user .+ rename to", "renaming a user: create another user instead"),
    (r"alter user .+ account unlock", "ACCOUNT UNLOCK: a locked-out user can log in again after a while"),
    (r"(grant|revoke) watermark_embedding", "watermarks"),
    (r"(remove|unload) (?=['\"])|load timeseries", "REMOVE and UNLOAD of files: use DELETE FROM and saros export"),
    (r"settle", "SETTLE: use FULL MERGE, which removes deleted points from files"),
    (r"debug", "DEBUG: use EXPLAIN ANALYZE"),
    (r"tracing", "TRACING: use EXPLAIN ANALYZE"),
    (r"create snapshot for schema", "CREATE SNAPSHOT: use saros backup, which includes the schema"),
    (r"(show|count) tables?", "tables: use SHOW DEVICES for devices, SHOW TIMESERIES for their series"),
    (r"desc|describe|show columns", "DESCRIBE: use SHOW TIMESERIES root.a.b.** for the series of a device"),
    (r"create table", "tables: writes create series, as does CREATE TIMESERIES"),
    (
        r"drop table|truncate",
        "tables: use DROP TIMESERIES root.a.b.**, or DELETE FROM root.a.b.** for the points only",
    ),
    (r"update", "UPDATE: use INSERT with the same time, which replaces the value"),
    (r"use", "USE: write each path in full, from root"),
    (r"select distinct", "SELECT DISTINCT: use the function distinct(x), which returns each value of a series once"),
    (r"select .* from \S+( \. \S+)* ((inner|left|right|full|outer|cross) )*join", _JOINS),
    (
        r"select .* disable align",
        "DISABLE ALIGN: use one SELECT per series, which returns only the times of that series",
    ),
    (r"select .* interval (?=')", "INTERVAL: write a duration without quotes, as in now() - 1h or now() - 30d"),
    (r"create or replace view|alter table", "the table model"),
)
_PATTERNS = tuple((re.compile(rf"(?:{words})(?!\w)", re.DOTALL), what) for words, what in _TABLE)


def unsupported_statement(tokens: Iterable[Any]) -> str | None:
    """Return the unsupported feature in a text that does not parse, or None if it is misspelt."""
    words = list(islice((token for token in tokens if token.channel == 0), _WORDS_MAX))
    if any(token.type == Sql.UNRECOGNIZED for token in words):
        return None
    text = " ".join(str(token.text).lower() for token in words)
    return next((what for pattern, what in _PATTERNS if pattern.match(text)), None)
