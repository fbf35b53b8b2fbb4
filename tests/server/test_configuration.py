from __future__ import annotations

import os
from pathlib import Path

import pytest

import saros
from saros_server.config.configuration import Configuration, ConfigurationError, describe, load


def test_defaults() -> None:
    loaded = load(environment={})
    assert Configuration() == loaded.values
    assert {"default"} == set(loaded.sources.values())


def test_later_places_win_and_say_so(tmp_path: Path) -> None:
    file = tmp_path / "saros.toml"
    file.write_text('durability = "os"\nworker_threads = 3\nmemtable_bytes = "1MiB"\n')
    loaded = load(file=str(file), environment={"SAROS_WORKER_THREADS": "4"}, overrides={"durability": "interval:50"})
    assert ("interval:50", 4, 1 << 20) == (
        loaded.values.durability,
        loaded.values.worker_threads,
        loaded.values.memtable_bytes,
    )
    sources = {key: source for key, _, source, _ in describe(loaded)}
    assert ("option", "environment", str(file)) == (
        sources["durability"],
        sources["worker_threads"],
        sources["memtable_bytes"],
    )


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("durability", "sometimes", "fsync, os or interval"),
        ("durability", "interval:0", "fsync, os or interval"),
        ("worker_threads", "0", "from 1 to 256"),
        ("memtable_bytes", "64 parsecs", "64MiB"),
        ("query_timeout_ms", "0s", "a duration"),
        ("time_unit", "minutes", "one of ms, us, ns"),
        ("time_zone", "Mars/Base", "a time zone"),
        ("listen_port", "70000", "^option listen_port is '70000': expected a whole number from 0 to 65535$"),
        ("listen_metrics_port", "on", "off, or a whole number from 0 to 65535"),
        ("durabilty", "os", "^unknown option durabilty; did you mean durability"),
        ("foo", "os", "^unknown option foo; saros config lists them$"),
    ],
)
def test_a_bad_option_is_named_with_what_is_allowed(key: str, value: str, what: str) -> None:
    with pytest.raises(ConfigurationError, match=what) as caught:
        load(environment={}, overrides={key: value})
    assert key in str(caught.value)
    assert 2004 == caught.value.code


def test_a_broken_or_missing_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "saros.toml"
    with pytest.raises(ConfigurationError, match="cannot read"):
        load(file=str(file))
    file.write_text("durability = ")
    with pytest.raises(ConfigurationError, match="is not TOML"):
        load(file=str(file))


def test_no_port_is_off() -> None:
    for given, shown in ((None, "off"), ("off", "off"), (9464, "9464")):
        overrides = {} if given is None else {"listen_metrics_port": given}
        values = {key: value for key, value, _, _ in describe(load(environment={}, overrides=overrides))}
        assert shown == values["listen_metrics_port"]


def test_foreign_environment_variables_are_left_alone() -> None:
    assert Configuration() == load(environment={"SAROS_HOME": "x", "PATH": "y"}).values


def test_what_a_folder_was_made_with_holds_where_nobody_says_it(tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    made = {"time_unit": "us", "time_partition_interval_ms": 86_400_000}
    saros.connect(folder, options=made).close()
    loaded = load(folder=folder)
    assert ("us", 86_400_000) == (loaded.values.time_unit, loaded.values.time_partition_interval_ms)
    assert os.path.join(folder, "node.json") == loaded.sources["time_unit"]
    with saros.connect(folder, timestamps="epoch") as connection:
        assert ("TimestampPrecision", "us") == connection.execute("show variables").fetchone()
    with pytest.raises(
        saros.Error, match="made with time_unit = us, not ms; this cannot be changed, so omit the option"
    ):
        saros.connect(folder, options={"time_unit": "ms"})
