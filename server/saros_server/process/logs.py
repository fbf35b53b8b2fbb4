"""The server's log: one JSON object per line on standard error, which the service manager or `server.log` receives.

    {"time": "2026-01-01T00:00:00.000Z", "level": "INFO", "logger": "saros_server.server", "event": "serving", ...}

The `extra` fields of a record become further members of the object. The literals of a statement are never logged: in
the statement's text, every literal is replaced by `?` (`log_slow`).
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from saros_engine.base.slow_queries import SlowQuery
from saros_server.process.terminal_log import fields_of

logger = logging.getLogger(__name__)


class JsonLines(logging.Formatter):
    """A formatter that writes a record as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        moment = datetime.fromtimestamp(record.created, UTC)
        words: dict[str, object] = {
            "time": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1_000:03}Z",
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage(),
        }
        words |= fields_of(record)
        if record.exc_info:
            words["exception"] = self.formatException(record.exc_info)
        return json.dumps(words, ensure_ascii=False, default=str)


def write_json_lines(level: str) -> None:
    """Send the records of all loggers to standard error, each as a line of JSON.

    Call this only in a server's process, not in a program that embeds Saros.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)


def set_level(level: str) -> None:
    """Change the level of `write_json_lines`."""
    logging.getLogger().setLevel(level)


def log_slow(slow: SlowQuery) -> None:
    """Log a slow query."""
    words = {"ms": slow.elapsed_ms, "query": slow.query_id, "statement": slow.statement}
    logger.warning("slow statement", extra=words)
