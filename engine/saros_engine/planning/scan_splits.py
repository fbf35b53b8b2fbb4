"""Devices of many rows, dealt out to a fragment's instances in slices of time.

    dealt by distribution   instance 0: d0 d2      instance 1: d1        of d0 there is as much as of all others
    in slices               d0[..5)  d1            d0[5..)  d2           in turn: d0[..5) d0[5..) d1 d2

An instance that is far ahead of its turn must wait once its output fills its buffer: with whole devices, perhaps most
of the time. Only plans that work row by row can be cut: scans, their joins, conditions and expressions, but no function
that looks at earlier rows, and no aggregate.

How many rows a device has is known when a query starts, not when it is planned. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from saros_engine.evaluation.evaluate import looks_back
from saros_engine.optimizer.rewrite import bottom_up
from saros_engine.plan.plan import (
    DeviceMerge,
    ExchangeSource,
    Filter,
    FragmentInstance,
    Node,
    PlanFragment,
    Project,
    Scan,
    TimeJoin,
)
from saros_storage.scan.reading import ScanRequest, TimeRange

#: The times at which a scan may be cut.
Cuts = Callable[[ScanRequest], Sequence[int]]


@dataclass(frozen=True, slots=True)
class _SplitScan:
    """What one instance does before another one's turn."""

    device: str
    time: TimeRange
    body: Node


def in_slices(instances: tuple[FragmentInstance, ...], cuts: Cuts) -> tuple[FragmentInstance, ...]:
    """The instances, with devices that have cuts dealt out in slices."""
    if len(instances) == 1:
        return instances
    hands: dict[int, list[DeviceMerge]] = {}
    for instance in instances:
        root = instance.fragment.root
        if instance.sink is not None and isinstance(root, DeviceMerge):
            hands.setdefault(instance.fragment.number, []).append(root)
    dealt = {number: _turns(hand, cuts) for number, hand in hands.items()}
    dealt = {number: turns for number, turns in dealt.items() if len(turns) > _devices(hands[number])}
    return tuple([_with_turns(instance, dealt, len(hands.get(instance.fragment.number, ()))) for instance in instances])


def _devices(hand: Sequence[DeviceMerge]) -> int:
    return sum(len(part.children) for part in hand)


def _turns(hand: Sequence[DeviceMerge], cuts: Cuts) -> list[_SplitScan]:
    """All devices of a fragment as they were before they were dealt out, each in its slices."""
    turns: list[_SplitScan] = []
    for number in range(_devices(hand)):
        part, place = hand[number % len(hand)], number // len(hand)
        turns += _slices(part.devices[place], part.children[place], cuts)
    return turns


def _slices(device: str, body: Node, cuts: Cuts) -> list[_SplitScan]:
    """A device's slices, in the order of its rows; all of it if it cannot be cut."""
    scan = _first_scan(body)
    borders = () if scan is None else cuts(scan)
    if scan is None or not borders:
        return [_SplitScan(device, TimeRange(), body)]
    whole = TimeRange()
    times = [TimeRange(a, b) for a, b in pairwise([whole.start, *borders, whole.end])]
    found = [_SplitScan(device, time, _of_time(body, time)) for time in times if not scan.time.intersect(time).empty]
    found = found or [_SplitScan(device, whole, body)]
    return found[::-1] if scan.descending else found


def _first_scan(body: Node) -> ScanRequest | None:
    """A request of a body whose rows are made each by itself; None of others."""
    match body:
        case Scan(request):
            return request
        case TimeJoin(children):
            scans = [_first_scan(child) for child in children]
            return None if None in scans else scans[0]
        case Filter(child, predicate):
            return None if looks_back(predicate) else _first_scan(child)
        case Project(child, expressions):
            return None if any(map(looks_back, expressions)) else _first_scan(child)
        case _:
            return None


def _of_time(body: Node, time: TimeRange) -> Node:
    """A body that may be cut, of this time only."""
    match body:
        case Scan(request):
            return replace(body, request=replace(request, time=request.time.intersect(time)))
        case TimeJoin(children):
            return replace(body, children=tuple([_of_time(child, time) for child in children]))
        case Filter(child) | Project(child):
            return replace(body, child=_of_time(child, time))
        case _:
            raise AssertionError(body)


def _with_turns(instance: FragmentInstance, dealt: dict[int, list[_SplitScan]], count: int) -> FragmentInstance:
    """An instance with its part of the turns, one of `count`, or with what it receives of them."""
    fragment = instance.fragment
    turns = dealt.get(fragment.number)
    if turns is None:
        root = bottom_up(fragment.root, lambda node: _receiving(node, dealt)) if dealt else fragment.root
    else:
        assert isinstance(fragment.root, DeviceMerge)
        mine = turns[instance.instance :: count]
        bodies, devices = tuple([turn.body for turn in mine]), tuple([turn.device for turn in mine])
        root = replace(fragment.root, children=bodies, devices=devices)
    return instance if root is fragment.root else replace(instance, fragment=PlanFragment(fragment.number, root))


def _receiving(node: Node, dealt: dict[int, list[_SplitScan]]) -> Node:
    turns = dealt.get(node.fragment) if isinstance(node, ExchangeSource) else None
    if turns is None:
        return node
    assert isinstance(node, ExchangeSource)
    return replace(node, devices=tuple([t.device for t in turns]), times=tuple([t.time for t in turns]))
