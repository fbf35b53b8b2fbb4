r"""`\copy (SELECT ...) TO FILE`: streams a result to a CSV, JSON lines or Parquet file.

The file gets its name only when it is complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import saros
from saros_server.sources.parquet_files import StatedDevice, with_metadata
from saros_server.sources.plurals import counted
from saros_shell.output.render import RENDERERS
from saros_shell.output.user_files import cannot_write
from saros_shell.repl.statements import unquoted
from saros_storage.base.paths import quote_node

_FORM = re.compile(
    r"""\(?(?P<statement>select\b.*?)\)?\s+to\s+(?P<file>'(?:[^']|'')+'|"(?:[^"]|"")+"|[^\s'"]\S*)\s*;?""",
    re.DOTALL | re.IGNORECASE,
)
_FROM_FILE = re.compile(r"""[^\s('"]\S*(?:\s*\([^)]*\))?\s+from\s+\S.*""", re.DOTALL | re.IGNORECASE)
_NO_READING = r"\copy only writes files; leave the shell and run `saros import` to read one"
_USAGE = r"use \copy (SELECT ...) TO FILE, with the suffix .csv, .json or .parquet, and in quotes if it contains spaces"


def copy_command(connection: saros.Connection, text: str) -> str:
    """Run the command.

    Return a message with the number of rows, the file, and a list of missing data. Raises saros.Error.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise saros.InterfaceError(_NO_READING if _FROM_FILE.fullmatch(text.strip()) else _USAGE)
    target = Path(unquoted(match["file"])).expanduser()
    with connection.execute(match["statement"]) as cursor:
        if cursor.description is None:
            raise saros.InterfaceError(r"\copy needs a query that returns rows")
        rows = write_result(cursor, target)
        missing = "".join(f"; data is missing: {text}" for text in cursor.missing)
    return f"{counted(rows, 'row')} -> {target}{missing}"


def write_result(cursor: saros.Cursor, target: Path, *, device: StatedDevice | None = None, typed: bool = False) -> int:
    """Write the cursor's rows to `target`, and return their number. The suffix of `target` determines the format.

    Raises saros.Error.

    device  the device to which all columns belong; Parquet files name it
    typed   in text formats, name each column by the path and the type of its series
    """
    part = target.with_name(target.name + ".part")
    kind = target.suffix.lower().lstrip(".")
    if kind not in ("csv", "json", "parquet"):
        raise saros.InterfaceError(f"cannot tell the format of {target.name}; use the suffix .csv, .json or .parquet")
    try:
        if kind == "parquet":
            rows = _write_parquet(cursor, part, device)
        else:
            rows = _write_text(cursor, part, kind, _titles(cursor, device) if typed else None)
        part.replace(target)
    except OSError as error:
        raise cannot_write(target, error) from error
    finally:
        part.unlink(missing_ok=True)
    return rows


def _titles(cursor: saros.Cursor, device: StatedDevice | None) -> list[str]:
    """Return the names of the columns with their types: root.a.b.temperature(FLOAT)."""
    titles = []
    for place, (name, type_, *_) in enumerate(cursor.description or ()):
        if name == "Time" and not place:
            titles.append(name)
        else:
            titles.append(f"{name if device is None else f'{device.path}.{quote_node(name)}'}({type_})")
    return titles


def _write_text(cursor: saros.Cursor, part: Path, kind: str, titles: list[str] | None) -> int:
    rows = 0

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    schema, batches = cursor.fetch_stream()
    if titles is not None:
        schema = pa.schema([field.with_name(title) for field, title in zip(schema, titles, strict=True)])
    with part.open("w", encoding="utf-8", newline="") as stream:
        for line in RENDERERS[kind](schema, counted(batches)):
            stream.write(line + "\n")
    return rows


def _write_parquet(cursor: saros.Cursor, part: Path, device: StatedDevice | None) -> int:
    import pyarrow.parquet as pq

    types = [str(column[1]) for column in cursor.description or ()]
    schema, batches = cursor.fetch_stream()
    schema = with_metadata(schema, types, device)
    rows = 0
    with pq.ParquetWriter(part, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows
