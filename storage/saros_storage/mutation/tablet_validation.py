"""Check tablets against the schema, and find the database of each.

A tablet may have a type that its series had before a change of type: it was prepared before the change, and is read
like the data written then. Shapes that passed the check are remembered, so that the next batch of the same shape costs
only a look-up.
"""

from __future__ import annotations

from collections.abc import Sequence

from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import split_path
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import TIME_MAX, TIME_MIN
from saros_storage.mutation.mutation import PlacedTablet
from saros_storage.mutation.tablet_codec import FrameHead, TabletFrame, encode_tablet
from saros_storage.schema import DeviceSchema, SchemaTree

#: Shapes of tablets whose fit is remembered.
_FITTING_MAX = 50_000


def frames_of(tablets: Sequence[Tablet], *, joined: bool) -> list[TabletFrame]:
    """Return the frames of the tablets that have rows: joined, to be kept, or in parts, to be copied into an entry.

    Raises UserMistake 2007 for a time out of range.
    """
    filled = [tablet for tablet in tablets if tablet.rows]
    if joined:
        frames = [TabletFrame.of_bytes(encode_tablet(tablet)) for tablet in filled]
    else:
        frames = [TabletFrame.of_tablet(tablet) for tablet in filled]
    for frame in frames:
        for time in (frame.span.start, frame.span.end):
            if not TIME_MIN < time < TIME_MAX:
                raise UserMistake(f"time {time} of {frame.head.device} is out of range", code=2007)
    return frames


class TabletValidator:
    """See the module. Threads may share it: what is remembered is looked up and stored whole."""

    def __init__(self) -> None:
        #: By id of a tablet's shape: the device it was found to fit, the shape, the depth of the database.
        self._known: dict[int, tuple[DeviceSchema, FrameHead, int]] = {}

    def place(self, frames: Sequence[TabletFrame], schema: SchemaTree) -> list[PlacedTablet]:
        """Frames with their depths. Raises UserMistake as `depth` does."""
        return [PlacedTablet(self.depth(frame.head, schema), frame) for frame in frames]

    def depth(self, head: FrameHead, schema: SchemaTree) -> int:
        """How many nodes of the device are its database. Raises UserMistake (508, 511, 507) if it does not fit."""
        device = schema.device(head.device)
        fits = self._known.get(id(head))
        if fits is None or fits[0] is not device or fits[1] is not head:
            device = _check(device, head)
            if len(self._known) >= _FITTING_MAX:
                self._known.clear()
            fits = self._known[id(head)] = (device, head, len(split_path(device.database)))
        return fits[2]


def _check(device: DeviceSchema | None, head: FrameHead) -> DeviceSchema:
    """The device that tablets of this shape go to. Raises UserMistake if they do not fit it."""
    if device is None:
        raise UserMistake(f"Path [{head.device}] does not exist", code=508)
    if device.aligned != head.aligned:
        kind = "aligned" if device.aligned else "not aligned"
        raise UserMistake(f"device {head.device} is {kind}: write to it so", code=511)
    for measurement, type_ in zip(head.measurements, head.types, strict=True):
        found = device.series.get(measurement)
        if found is None:
            raise UserMistake(f"Path [{head.device}.{measurement}] does not exist", code=508)
        if (
            found.type is not type_ and type_ not in found.earlier
        ):  # what was prepared before its type was changed is taken
            raise UserMistake(f"{head.device}.{measurement} is {found.type.name}, not {type_.name}", code=507)
    return device
