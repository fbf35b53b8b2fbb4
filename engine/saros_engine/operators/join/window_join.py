"""WindowJoin: puts columns of children with the same rows (the same windows, or one row each) side by side."""

from __future__ import annotations

from collections.abc import Sequence

from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import Operator, OperatorContext
from saros_storage.base.block import Block


class WindowJoinOperator(PullOperator):
    """Joins as many rows as all children have; each child may cut its blocks differently."""

    def __init__(self, children: Sequence[Operator], context: OperatorContext) -> None:
        super().__init__("WindowJoin", context, children)
        self._rest: list[Block | None] = [None] * len(children)

    def _needed(self) -> Sequence[Operator]:
        return [child for child, rest in zip(self._children, self._rest, strict=True) if rest is None]

    def _next(self) -> Block | None:
        for number, child in enumerate(self._children):
            if self._rest[number] is None and not child.finished:
                self._rest[number] = child.next()
        blocks = [rest for rest in self._rest if rest is not None]
        if len(blocks) < len(self._children):
            self._finished = self._exhausted()
            return None
        count = min(block.rows for block in blocks)
        columns = tuple(column for block in blocks for column in block.slice(0, count).columns)
        self._rest = [None if block.rows == count else block.slice(count, block.rows) for block in blocks]
        self._hold(sum(rest.nbytes for rest in self._rest if rest is not None))
        self._finished = self._exhausted()
        time = blocks[0].time
        return Block(None if time is None else time[:count], columns, count)

    def _exhausted(self) -> bool:
        pairs = list(zip(self._children, self._rest, strict=True))
        ended = [rest is None and child.finished for child, rest in pairs]
        # All children have the same number of rows. If one child ended early, rows of the other children would be lost.
        assert not any(ended) or all(rest is None for _, rest in pairs), "children of WindowJoin differ in rows"
        return all(ended)
