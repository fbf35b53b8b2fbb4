"""Split devices with many rows into slices of time, and distribute the slices over a fragment's instances.

    dealt by distribution   instance 0: d0 d2      instance 1: d1        d0 has as many rows as all others
    in slices               d0[..5)  d1            d0[5..)  d2           in turn: d0[..5) d0[5..) d1 d2

The receiver reads the instances in turns. An instance whose output fills its buffer must wait for its turn. If each
turn were an entire device, an instance might wait most of the time. A device's plan can be split only if it works row
by row: it may consist of scans, joins, conditions and expressions, but neither aggregates nor functions that look back
at earlier rows.

The number of rows of a device is known when a query starts, not when it is planned. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec
from msgspec.structs import replace

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

#: Returns the times at which a scan may be split.
Cuts = Callable[[ScanRequest], Sequence[int]]


class _SplitScan(msgspec.Struct, frozen=True):
    """A turn: the rows that the receiver reads from one instance before it reads from the next instance."""

    device: str
    time: TimeRange
    body: Node


def in_slices(instances: tuple[FragmentInstance, ...], cuts: Cuts) -> tuple[FragmentInstance, ...]:
    """Return the instances, with the slices of large devices distributed over the instances of their fragment."""
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
    """Return the slices of all devices of a fragment, with the devices in their original order."""
    turns: list[_SplitScan] = []
    for number in range(_devices(hand)):
        part, place = hand[number % len(hand)], number // len(hand)
        turns += _slices(part.devices[place], part.children[place], cuts)
    return turns


def _slices(device: str, body: Node, cuts: Cuts) -> list[_SplitScan]:
    """Return a device's slices in the order of its rows, or a single slice if the device cannot be split."""
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
    """Return the first scan's request, or None if the body does not work row by row."""
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
    """Return the body, restricted to a time range. The body must work row by row."""
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
    """Return an instance that sends its share (1 / `count`) of the turns, or an instance that receives all turns."""
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
