"""Snapshots of regions.

The member that has the data freezes the files, and the member that lacks the data fetches them.

    shelf     the region's capture, with the group's state as its note       (`saros_storage.checkpoint`)
              "snapshot.list" id                          -> the state, and each partition's manifest
              "snapshot.pull" id, number, offset, count   -> bytes of files, by number: no path is ever on the wire
              "snapshot.done" id                          -> nothing: the snapshot is released
    pull      fetches the list, then the files, each in pieces or several small ones at once, into a new folder next to
              the live one; checks each file against the size and the checksum in its manifest

A pulled snapshot becomes the region's folder. For slots that move, only the files are pulled, and the region then links
them. A pull starts a few threads for its requests.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from saros_cluster.data.state_file import GroupState, decode_state
from saros_cluster.multiraft.peers import BadRequest, CallHandler
from saros_storage.checkpoint.checkpoint import Checkpoint, decode_capture
from saros_storage.checkpoint.fetch import Read, pull_files, pull_partitions
from saros_storage.checkpoint.registry import CheckpointRegistry
from saros_storage.io.disk import Disk

LIST, PULL, DONE = "snapshot.list", "snapshot.pull", "snapshot.done"
#: Calls a node: (name, request) -> answer.
Ask = Callable[[str, bytes], bytes]
_QUESTION = struct.Struct("<16sIQI")
#: Number of requests in flight: some of them wait for the disk, others for the network.
_PIECES_AT_ONCE = 4


def call_handlers(shelf: CheckpointRegistry) -> Mapping[str, CallHandler]:
    """Return the handlers of calls from other nodes, keyed by the names of the calls."""

    def pull(_: object, request: bytes) -> bytes:
        try:
            id_, number, offset, count = _QUESTION.unpack(request)
        except struct.error as error:
            raise BadRequest(PULL, error) from error
        return shelf.read(id_, number, offset, count)

    def done(_: object, request: bytes) -> bytes:
        shelf.release(request)
        return b""

    return {LIST: lambda _, request: shelf.listing(request), PULL: pull, DONE: done}


def pull_snapshot(ask: Ask, id_: bytes, folder: str, disk: Disk) -> GroupState:
    """Fetch a snapshot's partitions into `folder`, which is emptied first. Return the group's state.

    Raises CorruptFile if a file does not match its manifest, and what `ask` raises.
    """
    capture = decode_capture(ask(LIST, id_))
    pull_partitions(_reader(ask, id_), capture, folder, disk, _PIECES_AT_ONCE)
    return replace(decode_state("snapshot", capture.note), schema=capture.schema)


def pull_capture(ask: Ask, id_: bytes, folder: str, disk: Disk) -> Checkpoint:
    """Fetch a capture's files into `folder`, and name them by their numbers. Raises what `pull_snapshot` raises.

    The caller must then release the capture (DONE).
    """
    capture = decode_capture(ask(LIST, id_))
    pull_files(_reader(ask, id_), capture.files(), folder, disk, _PIECES_AT_ONCE)
    return capture


def _reader(ask: Ask, id_: bytes) -> Read:
    return lambda number, offset, count: ask(PULL, _QUESTION.pack(id_, number, offset, count))
