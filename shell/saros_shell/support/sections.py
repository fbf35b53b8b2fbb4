"""The sections of a support bundle: each is a JSON document or a text, redacted before it leaves this module.

    of a folder      machine  configuration  files  verify (if no process has the folder open)  log
    of a database    status (`ping`)  metrics  show-*: the rows of SHOW statements, redacted column by column

No section contains points, users, the audit trail, keys, or the environment.
"""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import saros
from saros_server.config.configuration import Configuration, configuration_file, load
from saros_server.config.memory_limits import memory_bytes
from saros_server.process.daemon import LOG_FILE
from saros_shell.support.redaction import Redactor
from saros_storage.folder_check import check_folder
from saros_storage.io.disk import LocalDisk
from saros_storage.io.folder_lock import owner_of

#: The maximum number of bytes that are read from the end of the log. They contain several thousand lines.
_LOG_BYTES_MAX = 4 << 20
#: The maximum number of files that are listed. Further files are only counted.
_FILES_MAX = 20_000
_METRICS_SECONDS = 10.0
#: The statements that a database executes for the bundle. The rows of each statement are a section.
STATEMENTS = (
    "show version", "show variables", "show cluster details", "show regions", "show partitions", "show files",
    "show queries", "show slow queries",
)  # fmt: skip
#: Options whose values are kept, because they cannot be secret. For other options with texts, a bundle says only
#: whether the text differs from the default.
_FIXED = frozenset(
    {"time_unit", "durability", "compaction", "rebalance_by", "log_level", "authentication", "time_zone"}
)
#: A label of a metric. The label `le` is the bound of a histogram's bucket.
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_LIMITS = {"open files": resource.RLIMIT_NOFILE, "address space": resource.RLIMIT_AS, "core": resource.RLIMIT_CORE}


class Section(NamedTuple):
    """A file of the bundle: its name, its meaning, and a function that returns its content."""

    name: str
    what: str
    content: Callable[[], str]


def folder_sections(folder: str, redactor: Redactor, log_lines: int) -> list[Section]:
    """Return the sections of a data folder and of this machine."""
    return [
        Section(
            "machine.json", "versions, memory, disk, limits of processes", lambda: _json(_machine(folder, redactor))
        ),
        Section("configuration.json", "options in force", lambda: _json(_configuration(folder, redactor))),
        Section("files.txt", "files of the data folder with their sizes", lambda: "".join(_files(folder, redactor))),
        Section("verify.json", "quick check of the folder", lambda: _json(_verified(folder, redactor))),
        Section("log.jsonl", "last lines of server.log", lambda: "".join(_log(folder, redactor, log_lines))),
    ]


def database_sections(connection: saros.Connection, redactor: Redactor) -> list[Section]:
    """Return the sections of a database."""

    def of(statement: str) -> Section:
        name = statement.replace(" ", "-")
        return Section(
            f"{name}.json", f"rows of {statement.upper()}", lambda: _json(_rows(connection, statement, redactor))
        )

    return [of(statement) for statement in STATEMENTS]


def metrics_section(url: str, redactor: Redactor) -> Section:
    """Return the section of the metrics of the HTTP service at `url`."""

    def content() -> str:
        with urlopen(f"{url}/metrics", timeout=_METRICS_SECONDS) as reply:  # noqa: S310 - the URL of server.json
            text: str = reply.read().decode()
        return "".join(_metric(line, redactor) for line in text.splitlines(keepends=True))

    return Section("metrics.txt", "metrics of the server", content)


def _json(document: object) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


# ---------------------------------------------------------------------------------------------- machine


def _machine(folder: str, redactor: Redactor) -> dict[str, object]:
    used = shutil.disk_usage(folder)
    limits = {name: list(resource.getrlimit(number)) for name, number in _LIMITS.items()}
    return {
        "saros": version("saros"),
        "python": sys.version,
        "libraries": dict(_libraries()),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "load": os.getloadavg(),
        "memory_bytes": memory_bytes(),
        "disk": {"total": used.total, "free": used.free, "file_system": _file_system(folder, redactor)},
        "limits": limits,
        "options_in_environment": sorted(key for key in os.environ if key.startswith("SAROS_")),
    }


def _libraries() -> Iterable[tuple[str, str]]:
    for requirement in requires("saros") or ():
        name = requirement.split(";")[0].split(">")[0].split("=")[0].split("[")[0].strip()
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, "not installed"


def _file_system(folder: str, redactor: Redactor) -> dict[str, str]:
    """Return the type and options of a folder's file system, or an empty dictionary if the system has no /proc."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return {}
    real = Path(folder).resolve()
    rows = [line.split()[1:4] for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines()]
    found = [row for row in rows if real.is_relative_to(row[0])]
    _, kind, options = max(found, key=lambda row: len(row[0]))
    return {"type": kind, "options": redactor.message(options)}


# ---------------------------------------------------------------------------------------------- the folder


def _configuration(folder: str, redactor: Redactor) -> dict[str, object]:
    loaded = load(folder=folder, file=configuration_file(folder))
    options: dict[str, object] = {}
    for key, source in loaded.sources.items():
        value = getattr(loaded.values, key)
        where = source if source in ("default", "environment") else os.path.basename(source)
        options[key] = {"value": _option(key, value, redactor), "source": where}
    return options


def _option(key: str, value: object, redactor: Redactor) -> object:
    if not isinstance(value, str) or key in _FIXED or value == getattr(Configuration(), key):
        return value
    return redactor.host(value) if key == "listen_host" else "(set)"


def _files(folder: str, redactor: Redactor) -> Iterable[str]:
    count = 0
    for where, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(where, name)
            count += 1
            if count <= _FILES_MAX:
                size = os.lstat(path).st_size if os.path.lexists(path) else 0  # a server may have removed it
                yield f"{size:>14} {_relative(os.path.relpath(path, folder), redactor)}\n"
    yield f"{count} files\n"


def _relative(path: str, redactor: Redactor) -> str:
    return "/".join(redactor.message(part) for part in path.split(os.sep))


def _verified(folder: str, redactor: Redactor) -> dict[str, object]:
    if owner_of(folder) is not None:
        return {"checked": False, "reason": "a process has the folder open; see set_aside in show-partitions.json"}
    found = check_folder(folder, LocalDisk(), lambda _: None, quick=True)
    return {
        "checked": True,
        "partitions": found.partitions,
        "files": found.files,
        "file_bytes": found.file_bytes,
        "problems": [_without_folder(str(error), folder, redactor) for error in found.problems],
        "set_aside": [
            [_without_folder(path, folder, redactor), redactor.message(why)] for path, why in found.set_aside
        ],
    }


def _without_folder(text: str, folder: str, redactor: Redactor) -> str:
    return redactor.message(text.replace(folder, "."))


def _log(folder: str, redactor: Redactor, lines_max: int) -> Iterable[str]:
    path = Path(folder, LOG_FILE)
    if not path.exists():
        yield "(there is no server.log: the service manager may have the log)\n"
        return
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(size - _LOG_BYTES_MAX, 0))
        lines = stream.read().decode(errors="replace").splitlines()
    if size > _LOG_BYTES_MAX:
        lines = lines[1:]  # the first line is incomplete
    for line in lines[-lines_max:] if lines_max else ():
        yield redactor.log_line(line) + "\n"


# ---------------------------------------------------------------------------------------------- the database


def _rows(connection: saros.Connection, statement: str, redactor: Redactor) -> dict[str, object]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        names = [str(column[0]) for column in cursor.description or ()]
        rows = [
            [_value(name, value, redactor) for name, value in zip(names, row, strict=True)] for row in cursor.fetchall()
        ]
    return {"columns": names, "rows": rows}


#: The redaction of each column, by the column's name in lower case. Texts in other columns are redacted as messages.
_COLUMNS: Mapping[str, Callable[[Redactor, str], str]] = {
    "statement": Redactor.statement,
    "user": Redactor.name,
    "clientip": Redactor.host,
    "internaladdress": Redactor.host,
    "rpcaddress": Redactor.host,
}


def _value(name: str, value: object, redactor: Redactor) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    return _COLUMNS.get(name.lower(), Redactor.message)(redactor, text)


def _metric(line: str, redactor: Redactor) -> str:
    """Return a line of metrics with the values of its labels redacted."""

    def redacted(label: re.Match[str]) -> str:
        name, value = label.groups()
        return f'{name}="{value if name == "le" else redactor.message(value)}"'

    return line if line.startswith("#") else _LABEL.sub(redacted, line)
