"""DeviceMerge: returns the rows of several devices, with the device's name as the first column (ALIGN BY DEVICE)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saros_engine.expressions.text import repeat_text
from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import Operator, OperatorContext
from saros_engine.plan.plan import DeviceMerge
from saros_storage.base.block import Block, Column
from saros_storage.base.types import DataType
from saros_storage.scan.reading import BLOCK_ROWS_MAX


def _with_device(block: Block, device: str) -> Block:
    name = Column(DataType.TEXT, repeat_text(device, block.rows))
    return Block(block.time, (name, *block.columns), block.rows)


class DeviceAppendOperator(PullOperator):
    """Returns the rows of one device after another, and closes each child as soon as the child has ended."""

    def __init__(self, node: DeviceMerge, children: Sequence[Operator], context: OperatorContext) -> None:
        super().__init__("DeviceMerge", context, children, detail=f"{len(children)} devices")
        self._devices = node.devices
        self._at = 0
        self._finished = not children

    def _needed(self) -> Sequence[Operator]:
        return self._children[self._at : self._at + 1]

    def _next(self) -> Block | None:
        child, device = self._children[self._at], self._devices[self._at]
        block = None if child.finished else child.next()
        if child.finished:
            child.close()
            self._at += 1
            self._finished = self._at == len(self._children)
        return None if block is None else _with_device(block, device)


class DeviceMergeOperator(PullOperator):
    """Merges the rows of its children by time; rows with the same time are in the order of the children.

    A device may have several rows with the same time (clipped windows).
    """

    def __init__(self, node: DeviceMerge, children: Sequence[Operator], context: OperatorContext) -> None:
        super().__init__("DeviceMerge", context, children, detail=f"{len(children)} devices by time")
        self._devices = node.devices
        self._descending = node.descending
        self._rest: list[Block | None] = [None] * len(children)
        self._pending: list[Block] = []
        self._finished = not children

    def _needed(self) -> Sequence[Operator]:
        if self._pending:
            return ()
        return [child for number, child in enumerate(self._children) if self._needs_input(number)]

    def _needs_input(self, number: int) -> bool:
        """Return whether more rows of a child must be pulled, because further rows may have the same last time."""
        rest = self._rest[number]
        return not self._children[number].finished and (rest is None or rest.times[0] == rest.times[-1])

    def _next(self) -> Block | None:
        if not self._pending:
            complete = True
            for number, child in enumerate(self._children):
                if self._needs_input(number):
                    block, rest = child.next(), self._rest[number]
                    if block is not None:
                        more = _with_device(block, self._devices[number])
                        self._rest[number] = more if rest is None else Block.concat([rest, more])
                    complete = complete and not self._needs_input(number)
            self._hold(sum(rest.nbytes for rest in self._rest if rest is not None))
            if not complete:
                return None
            self._merge()
        result = self._pending.pop(0) if self._pending else None
        pairs = zip(self._children, self._rest, strict=True)
        self._finished = not self._pending and all(rest is None and child.finished for child, rest in pairs)
        return result

    def _merge(self) -> None:
        """Merge all rows before the border, which is the earliest last time of the unfinished children."""
        pairs = zip(self._children, self._rest, strict=True)
        ends = [int(rest.times[-1]) for child, rest in pairs if rest is not None and not child.finished]
        sign = -1 if self._descending else 1
        border = min((sign * end for end in ends), default=None)
        heads = []
        for number, rest in enumerate(self._rest):
            if rest is None:
                continue
            stop = rest.rows if border is None else int(np.searchsorted(sign * rest.times, border, side="left"))
            heads.append(rest.slice(0, stop))
            self._rest[number] = None if stop == rest.rows else rest.slice(stop, rest.rows)
        heads = [head for head in heads if head.rows]
        if heads:
            merged = Block.concat(heads)
            merged = merged.take(np.argsort(sign * merged.times, kind="stable"))
            self._pending = [merged.slice(at, at + BLOCK_ROWS_MAX) for at in range(0, merged.rows, BLOCK_ROWS_MAX)]
