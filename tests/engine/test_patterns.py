"""PATTERN_MATCH and DTW_MATCH find the matches that IoTDB's library finds, for one part or many parts of a series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from saros_engine.functions.aggregate import Rows
from saros_engine.functions.registry import AGGREGATES
from saros_engine.plan.plan import AggregateCall
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType
from saros_storage.read.row_ranges import RowRanges

_CASES = Path(__file__).parent / "testdata" / "pattern_matches.txt"


def cases() -> list[list[str]]:
    blocks = _CASES.read_text(encoding="utf-8").strip().split("\n\n")[1:]
    return [[*block.split("\n")[0].split("; "), *block.split("\n")[1:]] for block in blocks]


def answer(
    name: str,
    attributes: Mapping[str, str],
    times: Sequence[int],
    values: Sequence[float | None],
    cuts: tuple[int, ...] = (),
) -> object:
    """Return the result for a series that is cut into parts, after merging the states of the parts."""
    call = AggregateCall(name, (), DataType.TEXT, tuple(attributes.items()))
    AGGREGATES[name].check([DataType.DOUBLE], call.attributes)
    aggregate = AGGREGATES[name].of(call)
    rows = Rows([Column.of(DataType.DOUBLE, values)], Column.of(DataType.TIMESTAMP, times))
    edges = np.array([0, *cuts, len(times)])
    states = aggregate.partial(rows, RowRanges(edges[:-1], edges[1:]))
    merged = aggregate.merge(states, RowRanges(np.array([0]), np.array([len(edges) - 1])))
    return aggregate.final(merged).to_list()[0]


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


@pytest.mark.parametrize(
    ("threshold", "at", "pattern", "times", "values", "shapes", "runs"), cases(), ids=range(len(cases()))
)
def test_matches_are_those_of_iotdb(
    threshold: str, at: str, pattern: str, times: str, values: str, shapes: str, runs: str
) -> None:
    series = [int(time) for time in times.split(",")], numbers(values)
    found = answer("dtw_match", {"pattern": pattern, "threshold": threshold}, *series)
    assert (None if runs == "[]" else runs) == found
    attributes = {"timePattern": at, "valuePattern": pattern, "threshold": threshold}
    expected = shapes if shapes != "[]" else found
    cuts = (1, len(series[0]) // 2)
    assert [expected, expected] == [
        answer("pattern_match", attributes, *series),
        answer("pattern_match", attributes, *series, cuts),
    ]


def test_nulls_and_values_that_are_not_finite_are_skipped() -> None:
    series = [1, 2, 3, 4, 5], [0.0, None, float("nan"), float("inf"), 2.0]
    expected = '[{"distance":0.000000,"startTime":1,"endTime":5}]'
    assert expected == answer("dtw_match", {"pattern": "0,2", "threshold": "0"}, *series)


@pytest.mark.parametrize("cuts", [(), (2,), (1, 3)])
def test_a_pattern_of_one_value_matches_values_near_it(cuts: tuple[int, ...]) -> None:
    expected = '[{"distance":1.000000,"startTime":2,"endTime":2}, {"distance":0.500000,"startTime":4,"endTime":4}]'
    series = [1, 2, 3, 4], [0.0, 4.0, 9.0, 4.5]
    assert expected == answer("dtw_match", {"pattern": "5", "threshold": "1"}, *series, cuts)


def test_a_level_series_matches_by_its_values() -> None:
    attributes = {"timePattern": "1,2", "valuePattern": "5,5", "threshold": "0"}
    assert '[{"distance":0.000000,"startTime":1,"endTime":2}]' == answer("pattern_match", attributes, [1, 2], [5, 5])


def test_no_match_spans_two_series() -> None:
    attributes = {"pattern": "0,2", "threshold": "0"}
    aggregate = AGGREGATES["dtw_match"].of(AggregateCall("dtw_match", (), DataType.TEXT, tuple(attributes.items())))
    rows = Rows([Column.of(DataType.DOUBLE, [1.0, 1.0, 2.0])], Column.of(DataType.TIMESTAMP, [1, 2, 3]))
    states = aggregate.partial(rows, RowRanges(np.array([0, 2]), np.array([2, 3])))
    whole = RowRanges(np.array([0]), np.array([2]))
    consecutive = '[{"distance":0.000000,"startTime":2,"endTime":3}]'
    assert [consecutive] == aggregate.final(aggregate.merge(states, whole)).to_list()
    assert [None] == aggregate.final(aggregate.merge_series(states, whole)).to_list()


@pytest.mark.parametrize(
    ("name", "attributes", "message"),
    [
        ("dtw_match", {"pattern": "1,2"}, "needs the attribute 'threshold'"),
        ("dtw_match", {"threshold": "1"}, "needs the attribute 'pattern'"),
        ("dtw_match", {"pattern": "1,x", "threshold": "1"}, "'pattern' must be numbers, separated by commas"),
        ("dtw_match", {"pattern": "1,inf", "threshold": "1"}, "'pattern' must be finite numbers"),
        ("dtw_match", {"pattern": "1,2", "threshold": "-1"}, "'threshold' must be a number of at least 0"),
        ("dtw_match", {"pattern": "1,2", "threshold": "1,2"}, "'threshold' must be a number of at least 0"),
        (
            "pattern_match",
            {"timePattern": "1", "valuePattern": "1", "threshold": "1"},
            "two or more ascending integers",
        ),
        ("pattern_match", {"timePattern": "2,1", "valuePattern": "1,2", "threshold": "1"}, "two or more ascending"),
        ("pattern_match", {"timePattern": "1,1.5", "valuePattern": "1,2", "threshold": "1"}, "two or more ascending"),
        ("pattern_match", {"timePattern": "1,2", "valuePattern": "1,2,3", "threshold": "1"}, "has 2 numbers, and"),
        ("pattern_match", {"timePattern": "1,2", "valuePattern": "1,2"}, "needs the attribute 'threshold'"),
    ],
)
def test_faulty_attributes_are_refused(name: str, attributes: dict[str, str], message: str) -> None:
    with pytest.raises(UserMistake, match=message) as caught:
        AGGREGATES[name].check([DataType.INT32], attributes.items())
    assert caught.value.code == 701


def test_texts_are_refused() -> None:
    with pytest.raises(UserMistake, match="dtw_match takes"):
        AGGREGATES["dtw_match"].check([DataType.TEXT], {"pattern": "1", "threshold": "1"}.items())


def test_too_many_points_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = {"pattern": "1,2", "threshold": "1"}
    series = list(range(20)), [float(i) for i in range(20)]
    monkeypatch.setattr("saros_engine.functions.patterns._WARPING_MAX", 79)
    with pytest.raises(UserMistake, match="20 points are too many for a pattern of 2") as caught:
        answer("dtw_match", attributes, *series)
    assert caught.value.code == 2005
    monkeypatch.setattr("saros_engine.functions.patterns._POINTS_MAX", 19)
    with pytest.raises(UserMistake, match="looks at 20 points"):
        answer("dtw_match", attributes, *series, (10,))
