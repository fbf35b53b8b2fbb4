"""The driver for asyncio: `await saros.aio.connect(...)`."""

from saros.aio.aio import AsyncConnection, AsyncCursor, AsyncPrepared, connect

__all__ = ["AsyncConnection", "AsyncCursor", "AsyncPrepared", "connect"]
