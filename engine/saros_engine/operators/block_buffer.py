"""A buffer of blocks that an operator keeps for later, in memory or in a file. The operator decides when to spill.

    append                      add a block at the end, in memory
    spill_to_file               write all blocks in memory to the file
    first, drop_first           return the oldest block; remove it
    pop_last                    remove and return the newest block

A buffer is used only by the thread of its operator.
"""

from __future__ import annotations

from collections import deque

from saros_engine.memory.spill import QuerySpill, Spilled, SpillFile
from saros_storage.base.block import Block


class BlockBuffer:
    """A deque of blocks, some of which may be in a file. `close` deletes the file."""

    def __init__(self, spill: QuerySpill | None) -> None:
        """`spill` is None if the blocks must stay in memory."""
        self._spill = spill
        self._file: SpillFile | None = None
        #: The blocks, oldest first; all spilled blocks come before the blocks in memory.
        self._blocks: deque[Block | Spilled] = deque()
        #: The oldest block, if it was spilled and has been read back from the file.
        self._head: Block | None = None
        #: The size in bytes of the blocks in memory.
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._blocks)

    @property
    def in_files(self) -> bool:
        """True if any block has ever been spilled."""
        return self._file is not None

    def append(self, block: Block) -> None:
        """Append a block."""
        self._blocks.append(block)
        self.nbytes += block.nbytes

    def spill_to_file(self) -> None:
        """Write all blocks in memory to the file. Raises MemoryExceeded if the file would become too large."""
        assert self._spill is not None
        if self._file is None:
            self._file = self._spill.open()
        for number, block in enumerate(self._blocks):
            if isinstance(block, Block):
                self._blocks[number] = self._file.write(block)
        self._head, self.nbytes = None, 0

    def first(self) -> Block:
        """Return the oldest block without removing it."""
        block = self._blocks[0]
        if isinstance(block, Block):
            return block
        if self._head is None:
            self._head = self._read(block)
            self.nbytes += self._head.nbytes
        return self._head

    def drop_first(self) -> None:
        """Remove the oldest block."""
        gone = self._blocks.popleft()
        block = gone if isinstance(gone, Block) else self._head
        self.nbytes -= 0 if block is None else block.nbytes
        self._head = None

    def pop_last(self) -> Block:
        """Remove and return the newest block."""
        block = self._blocks.pop()
        if isinstance(block, Spilled):
            return self._read(block)
        self.nbytes -= block.nbytes
        return block

    def _read(self, spilled: Spilled) -> Block:
        assert self._file is not None
        return self._file.read(spilled)

    def close(self) -> None:
        """Drop all blocks and delete the file. Idempotent."""
        self._blocks.clear()
        self._head, self.nbytes = None, 0
        if self._file is not None:
            self._file.close()
