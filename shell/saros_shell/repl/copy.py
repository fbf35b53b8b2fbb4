r"""`\copy (SELECT ...) TO FILE`: a result into a CSV, JSON lines or Parquet file, streamed.

The file appears under its name only when it is whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import saros
from saros_server.sources.plurals import counted
from saros_shell.output.render import RENDERERS
from saros_storage.io.disk import FULL_ERRNOS

_FORM = re.compile(
    r"\(?(?P<statement>select\b.*?)\)?\s+to\s+(?P<file>'[^']+'|\"[^\"]+\"|\S+)\s*;?", re.DOTALL | re.IGNORECASE
)


def copy_command(connection: saros.Connection, text: str) -> str:
    """Carry it out; the answer says how many rows went where, and which data they lack. Raises saros.Error."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise saros.InterfaceError(r"use \copy (SELECT ...) TO FILE, the file ending in .csv, .json or .parquet")
    target = Path(match["file"].strip("'\"")).expanduser()
    with connection.execute(match["statement"]) as cursor:
        if cursor.description is None:
            raise saros.InterfaceError(r"\copy needs a query that gives rows")
        rows = write_result(cursor, target)
        missing = "".join(f"; data is missing: {text}" for text in cursor.missing)
    return f"{counted(rows, 'row')} -> {target}{missing}"


def write_result(cursor: saros.Cursor, target: Path) -> int:
    """Write the cursor's rows to `target` by its suffix; returns their number."""
    part = target.with_name(target.name + ".part")
    kind = target.suffix.lower().lstrip(".")
    if kind not in ("csv", "json", "parquet"):
        raise saros.InterfaceError(f"cannot tell the format of {target.name}: end it in .csv, .json or .parquet")
    try:
        rows = _write_parquet(cursor, part) if kind == "parquet" else _write_text(cursor, part, kind)
        part.replace(target)
    except OSError as error:
        raise cannot_write(target, error) from error
    finally:
        part.unlink(missing_ok=True)
    return rows


def cannot_write(target: Path, error: OSError) -> saros.Error:
    """What to say when the operating system refuses."""
    said = f"cannot write {target}: {error.strerror}"
    return saros.OperationalError(said, 611) if error.errno in FULL_ERRNOS else saros.InterfaceError(said)


def _write_text(cursor: saros.Cursor, part: Path, kind: str) -> int:
    rows = 0

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    schema, batches = cursor.fetch_stream()
    with part.open("w", encoding="utf-8", newline="") as stream:
        for line in RENDERERS[kind](schema, counted(batches)):
            stream.write(line + "\n")
    return rows


def _write_parquet(cursor: saros.Cursor, part: Path) -> int:
    import pyarrow.parquet as pq

    schema, batches = cursor.fetch_stream()
    rows = 0
    with pq.ParquetWriter(part, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows
