"""The driver for asyncio: `await saros.aio.connect(...)`.

aio               connections and cursors
node_connection   connections to nodes in an event loop
threads           sessions on embedded databases, whose calls run on threads
"""

from saros.aio.aio import AsyncConnection, AsyncCursor, AsyncPrepared, connect

__all__ = ["AsyncConnection", "AsyncCursor", "AsyncPrepared", "connect"]
