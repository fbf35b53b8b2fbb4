"""A node's options: the table of all options, and the source that each value comes from.

    default  <  node.json of the data folder, for options that are fixed when the folder is created
             <  saros.toml in the data folder (or --config FILE)  <  SAROS_<KEY> in the environment  <  --set key=value

Every value is validated when it is read. The error for a bad key or value names the key or value, its source, and the
allowed values. A `Configuration` is frozen: `settings` replaces it when options of a running node change. The options
of a data folder (`time_unit`, `time_partition_interval_ms`) never change: the store refuses to open the folder with
other values.

Only `load` reads files. It also reads the process's environment, unless the caller passes another one.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields
from dataclasses import field as dataclass_field
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from saros_server.config.device_template import DEFAULT_TEMPLATE, DeviceTemplate
from saros_server.config.did_you_mean import did_you_mean
from saros_storage.folder.layout import NODE_FILE
from saros_storage.folder.node_file import made_with
from saros_wire.protocol import DEFAULT_HTTP_PORT, DEFAULT_PORT


class ConfigurationError(Exception):
    """An invalid key or value of the configuration."""

    code = 2004


#: The configuration file in a data folder.
CONFIGURATION_FILE = "saros.toml"
#: The source of a value given on the command line or in the call.
_GIVEN = "option"
_ENVIRONMENT = "environment"
#: The log levels, starting with the most verbose one.
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_SIZES = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_DURATIONS_MS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def parse_size(value: object) -> int:
    """Parse a number of bytes. Raises ValueError, whose message names the expected form."""
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", str(value).strip().lower())
    if match is None or match.group(2) not in _SIZES:
        raise ValueError("a number of bytes such as 67108864 or 64MiB")
    return int(match.group(1)) * _SIZES[match.group(2)]


def _duration_ms(value: object) -> int:
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", str(value).strip().lower())
    if match is None or match.group(2) not in _DURATIONS_MS or int(match.group(1)) == 0:
        raise ValueError("milliseconds, or a duration such as 500ms, 30s, 12h or 7d")
    return int(match.group(1)) * _DURATIONS_MS[match.group(2)]


def _one_of(*words: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if str(value) not in words:
            raise ValueError("one of " + ", ".join(words))
        return str(value)

    return parse


def _durability(value: object) -> str:
    if not re.fullmatch(r"fsync|os|interval:[1-9]\d*", str(value)):
        raise ValueError("fsync, os or interval:<milliseconds>")
    return str(value)


def _device_template(value: object) -> str:
    DeviceTemplate.of(str(value))
    return str(value)


def _count(low: int, high: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        text = str(value)
        if not text.isdecimal() or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return parse


def _port(value: object) -> int | None:
    try:
        return None if str(value) == "off" else _count(0, 65_535)(value)
    except ValueError as error:
        raise ValueError(f"off, or {error}") from error


def _zone(value: object) -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        ZoneInfo(str(value))
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError("a time zone such as UTC, Europe/Berlin or Asia/Shanghai") from error
    return str(value)


class Effect(Enum):
    """When a new value of an option takes effect."""

    NOW = "now"
    RESTART = "restart"
    #: The option is fixed when a folder is created.
    NEVER = "never"


def _option(
    default: object,
    parse: Callable[[object], object],
    doc: str,
    effect: Effect = Effect.RESTART,
    *,
    file_only: bool = False,
) -> Any:
    """Define an option. `file_only`: statements cannot change it, because it decides what clients may do."""
    metadata = {"parse": parse, "doc": doc, "effect": effect, "file_only": file_only}
    return dataclass_field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Configuration:
    """All options of a node; each field's metadata holds its parser and its meaning (see docs/configuration.md)."""

    time_unit: str = _option(
        "ms", _one_of("ms", "us", "ns"), "Unit of every timestamp; fixed when a folder is created.", Effect.NEVER
    )
    time_partition_interval_ms: int = _option(
        604_800_000, _duration_ms, "Time span of a partition; fixed when a folder is created.", Effect.NEVER
    )
    durability: str = _option(
        "fsync",
        _durability,
        "What an acknowledged write survives: power loss (fsync), a crash of Saros (os), or between (interval:ms).",
    )
    memtable_bytes: int = _option(64 << 20, parse_size, "Size at which a partition's MemTable is flushed.")
    memtables_total_bytes: int = _option(
        512 << 20, parse_size, "Writers wait while all MemTables together exceed this size."
    )
    compaction: str = _option(
        "on",
        _one_of("on", "off"),
        "Whether files are merged or, if half of a file is deleted, rewritten in the background; MERGE always works.",
        Effect.NOW,
    )
    compaction_bytes_per_second: int = _option(
        64 << 20,
        parse_size,
        "Bytes that merges may read and write per second; 0: no limit, and no pauses for others.",
        Effect.NOW,
    )
    compaction_file_bytes: int = _option(1 << 30, parse_size, "Maximum size of merged files.", Effect.NOW)
    log_archive_bytes: int = _option(
        0, parse_size, "Bytes of obsolete log kept for `saros backup --incremental`; 0: none."
    )
    chunk_cache_bytes: int = _option(
        256 << 20,
        parse_size,
        "Memory for cached decoded chunks; plus a quarter of it for file indexes, and an eighth for window results.",
    )
    latest_cache_bytes: int = _option(
        64 << 20, parse_size, "Memory for cached latest points of SELECT LAST: about 250 bytes per series."
    )
    query_memory_bytes: int = _option(
        512 << 20, parse_size, "Memory limit of one query; beyond it, the query fails with code 709.", Effect.NOW
    )
    queries_memory_bytes: int = _option(
        0,
        parse_size,
        "Memory limit of all queries together; beyond it, queries spill to files, wait, or the one that holds most"
        " fails with code 2033. 0: a quarter of the memory of the machine or its cgroup, at least 64 MiB.",
    )
    query_spill_bytes: int = _option(
        4 << 30, parse_size, "Bytes that one query may spill to files in the data folder; 0: none.", Effect.NOW
    )
    import_memory_bytes: int = _option(
        1 << 30,
        parse_size,
        "Memory of the process that reads a Parquet file imported over HTTP; beyond it, the file is refused.",
        Effect.NOW,
    )
    query_timeout_ms: int = _option(
        60_000, _duration_ms, "Time limit of one query; beyond it, the query fails with code 712.", Effect.NOW
    )
    slow_query_ms: int = _option(
        1_000,
        _duration_ms,
        "Statements that take this long are listed by SHOW SLOW QUERIES, and logged by servers.",
        Effect.NOW,
    )
    worker_threads: int = _option(2, _count(1, 256), "Threads that run queries.")
    auto_create_schema: str = _option(
        "on",
        _one_of("on", "off"),
        "Whether writes create missing databases and series; off: they refuse values without a series (code 507).",
        Effect.NOW,
    )
    integer_literal_type: str = _option(
        "DOUBLE",
        _one_of("INT32", "INT64", "FLOAT", "DOUBLE"),
        "Type of the series that INSERT creates for a number without a decimal point.",
        Effect.NOW,
    )
    decimal_literal_type: str = _option(
        "DOUBLE",
        _one_of("FLOAT", "DOUBLE"),
        "Type of the series that INSERT creates for a number with a decimal point.",
        Effect.NOW,
    )
    default_database_level: int = _option(
        1, _count(1, 16), "Depth below root of databases created by writes to unknown paths.", Effect.NOW
    )
    rebalance_by: str = _option(
        "off",
        _one_of("off", "writes", "bytes", "queries"),
        "Load by which a cluster is balanced automatically: slots move when a group has far more than the others.",
        Effect.NOW,
    )
    rebalance_interval_ms: int = _option(3_600_000, _duration_ms, "Interval of this balancing.", Effect.NOW)
    meta_voter_timeout_ms: int = _option(
        60_000,
        _duration_ms,
        "A voter of a cluster's meta group that has been silent this long gives its vote to another node.",
    )
    migration_bytes_per_second: int = _option(
        0,
        parse_size,
        "Bytes per second that a node may fetch from others when it receives slots or joins a group; 0: no limit.",
        Effect.NOW,
    )
    migration_cpu_percent: int = _option(
        30,
        _count(0, 100),
        "Percent of one core that a node may use to write MemTables to files that other nodes are to receive; 0: no"
        " limit.",
        Effect.NOW,
    )
    load_folders: str = _option(
        "",
        str,
        "Folders from which clients of a server may LOAD files, separated by colons; empty: none.",
        Effect.NOW,
        file_only=True,
    )
    time_zone: str = _option("UTC", _zone, "Default time zone of sessions.", Effect.NOW)
    listen_host: str = _option(
        "127.0.0.1",
        str,
        "Address that a server listens on; addresses other than loopback need authentication and TLS.",
        file_only=True,
    )
    listen_port: int = _option(
        DEFAULT_PORT, _count(0, 65_535), "Port that a server listens on; 0: any free one.", file_only=True
    )
    http_port: int = _option(
        DEFAULT_HTTP_PORT, _count(0, 65_535), "Port of the HTTP service of a server; 0: none.", file_only=True
    )
    line_protocol_device: str = _option(
        DEFAULT_TEMPLATE,
        _device_template,
        "Devices of InfluxDB's line protocol: a path with {db}, {measurement} and tags in braces; other tags follow.",
        Effect.NOW,
    )
    listen_metrics_port: int | None = _option(
        None,
        _port,
        "Another port for /metrics, /health, and /ready, without TLS, on this machine only; off: none.",
        file_only=True,
    )
    log_level: str = _option(
        "INFO", _one_of(*LOG_LEVELS), f"Lowest level that a server logs ({', '.join(LOG_LEVELS)}).", Effect.NOW
    )
    authentication: str = _option(
        "off",
        _one_of("off", "on"),
        "Whether a server without users creates the first one; with users, clients must log in.",
        file_only=True,
    )
    password_cost: int = _option(
        15,
        _count(10, 20),
        "Cost of hashing a password: scrypt over 2^n KiB, three times; below 15 for tests only.",
        file_only=True,
    )
    tls_certificate: str = _option(
        "",
        str,
        "PEM file with the server's certificate, for TLS with clients; reloaded when it changes.",
        file_only=True,
    )
    tls_key: str = _option("", str, "PEM file with the certificate's key, readable only by its owner.", file_only=True)
    tls_self_signed: str = _option(
        "",
        str,
        "Host names and addresses, separated by commas: without tls_certificate, each start makes a certificate for"
        " them, signed by an authority of the folder's own (tls/ca.pem, for clients).",
        file_only=True,
    )
    peer_ca: str = _option(
        "", str, "PEM file with the authority that signed the certificates of a cluster's nodes.", file_only=True
    )
    peer_certificate: str = _option(
        "",
        str,
        "PEM file with this node's certificate, for TLS with the other nodes; reloaded when it changes.",
        file_only=True,
    )
    peer_key: str = _option(
        "", str, "PEM file with that certificate's key, readable only by its owner.", file_only=True
    )


#: The options by name, with their metadata.
OPTIONS: Mapping[str, Field[Any]] = {option.name: option for option in fields(Configuration)}


class Sources(msgspec.Struct, frozen=True):
    """The sources of a configuration; see `load`."""

    folder: str | None = None
    file: str | None = None
    environment: Mapping[str, str] = {}
    overrides: Mapping[str, object] = {}


class Loaded(msgspec.Struct, frozen=True):
    """A configuration, and the source of each value."""

    values: Configuration
    #: The source of each option as a text for people: a file's path, or a word.
    sources: Mapping[str, str]
    #: Read again by `load_again`.
    inputs: Sources = Sources()


def load(
    *,
    folder: str | None = None,
    file: str | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Loaded:
    """Merge the sources; if `folder` or `file` is None, leave this source out. Raises ConfigurationError."""
    surroundings = dict(os.environ) if environment is None else environment
    return _load(Sources(folder, file, surroundings, overrides or {}))


def load_again(loaded: Loaded) -> Loaded:
    """Read the files of a configuration again. Raises ConfigurationError."""
    inputs = loaded.inputs
    found = inputs.file if inputs.folder is None else configuration_file(inputs.folder)
    return _load(replace(inputs, file=found))


def _load(inputs: Sources) -> Loaded:
    folder, file = inputs.folder, inputs.file
    values: dict[str, object] = {}
    sources = dict.fromkeys(OPTIONS, "default")
    layers: list[tuple[str, Mapping[str, object]]] = []
    if folder is not None:
        layers.append((os.path.join(folder, NODE_FILE), _fixed(folder)))
    if file is not None:
        layers.append((file, _read_file(file)))
    layers.append((_ENVIRONMENT, _from_environment(inputs.environment)))
    layers.append((_GIVEN, inputs.overrides))
    for source, layer in layers:
        for key, raw in layer.items():
            values[key] = parse_option(key, raw, source)
            sources[key] = source
    return Loaded(Configuration(**values), sources, inputs)  # type: ignore[arg-type]


def _fixed(folder: str) -> Mapping[str, object]:
    made = made_with(folder)
    if made is None:
        return {}
    from saros_storage.base.types import TIME_UNITS  # This imports NumPy: needed only for an existing database

    suffix, interval = made
    unit = TIME_UNITS.get(suffix)
    return {} if unit is None else {"time_unit": suffix, "time_partition_interval_ms": interval * 1_000 // unit.value}


def _read_file(path: str) -> Mapping[str, object]:
    try:
        with open(path, "rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise ConfigurationError(f"cannot read configuration {path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"configuration {path} is not TOML: {error}") from error


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    prefixed = {k.removeprefix("SAROS_").lower(): v for k, v in environment.items() if k.startswith("SAROS_")}
    return {k: v for k, v in prefixed.items() if k in OPTIONS}


def parse_option(key: str, raw: object, source: str = _GIVEN) -> object:
    """Return the value of an option. Raises ConfigurationError, which names the source unless it is the caller."""
    where = "" if source == _GIVEN else f" ({source})"
    if key not in OPTIONS:
        remedy = did_you_mean(key, OPTIONS) or "; saros config lists them"
        raise ConfigurationError(f"unknown option {key}{where}{remedy}")
    parse: Callable[[object], object] = OPTIONS[key].metadata["parse"]
    try:
        return parse(raw)
    except ValueError as error:
        raise ConfigurationError(f"option {key}{where} is {raw!r}: expected {error}") from error


def describe(loaded: Loaded) -> list[tuple[str, str, str, str]]:
    """Return (key, value, source, meaning) of every option."""
    return [
        (name, option_text(getattr(loaded.values, name)), loaded.sources[name], str(option.metadata["doc"]))
        for name, option in OPTIONS.items()
    ]


def option_text(value: object) -> str:
    """Return the value of an option as a text that `parse_option` accepts."""
    return "off" if value is None else str(value)


def is_overridden(loaded: Loaded, key: str) -> bool:
    """Return whether the value of an option comes from a source that takes precedence over the file."""
    return loaded.sources[key] in (_ENVIRONMENT, _GIVEN)


def configuration_file(folder: str) -> str | None:
    """Return the path of the folder's own `saros.toml`, or None if it does not exist."""
    path = Path(folder) / CONFIGURATION_FILE
    try:
        found = path.is_file()
    except PermissionError:
        found = True  # the file may exist: reading it raises the error
    return str(path) if found else None
