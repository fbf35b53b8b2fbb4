"""The paths of Prometheus' series: each set of labels has a different path, and can be read back from this path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saros_server.prometheus.series import Refusal, Series, device_of, labels_of, series_of
from saros_storage.base.paths import split_path
from saros_wire.generated.prometheus_pb2 import Label, TimeSeries

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6)
TRICKY = st.text(st.sampled_from('{}="\\,\n`.*ab'), min_size=1, max_size=6)
LABELS = st.dictionaries(st.just("__name__") | TEXTS | TRICKY, TEXTS | TRICKY, min_size=1, max_size=4)


def key(labels: dict[str, str]) -> bytes:
    return TimeSeries(labels=[Label(name=name, value=value) for name, value in labels.items()]).SerializeToString()


@given(LABELS)
def test_labels_are_read_from_the_path(labels: dict[str, str]) -> None:
    device = device_of(labels)
    assert sorted(labels.items()) == list((labels_of(device) or {}).items())
    assert split_path(device) == split_path(".".join(split_path(device)))


@given(LABELS, LABELS)
def test_only_equal_labels_have_the_same_path(one: dict[str, str], other: dict[str, str]) -> None:
    assert (one == other) == (device_of(one) == device_of(other))


@given(LABELS)
def test_the_order_of_labels_and_empty_ones_do_not_matter(labels: dict[str, str]) -> None:
    found = series_of(key(labels))
    assert found == series_of(key({"empty": "", **dict(reversed(labels.items()))} | labels))
    assert found == Series(device_of(labels), {name: v for name, v in labels.items() if name != "__name__"})


@pytest.mark.parametrize(
    "device",
    [
        "root.prometheus",
        "root.prometheus.up",
        "root.plant.up.`{}`",
        "root.prometheus.`{}`",
        "root.prometheus.up.`{}`.deeper",
        'root.prometheus.up.`{b="1",a="2"}`',
        'root.prometheus.up.`{a="1",}`',
        'root.prometheus.up.`{a="1" }`',
        'root.prometheus.up.`{a=""}`',
        'root.prometheus.up.`{a="1",a="1"}`',
        'root.prometheus.up.`{a="x"y"}`',
    ],
)
def test_other_devices_keep_no_series(device: str) -> None:
    assert labels_of(device) is None


def test_a_long_series_is_not_remembered() -> None:
    text = "x" * 5_000
    found = series_of(key({"a": text}))
    assert isinstance(found, Series)
    assert {"a": text} == found.tags
    assert isinstance(series_of(key({"a": text * 2})), Refusal)
