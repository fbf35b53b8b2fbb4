"""Check tablets against the schema, and find the database of each.

A tablet may have a former type of its series: it was prepared before the type changed, and is read like the data
written then. Shapes that passed the check are cached, so that the next batch of the same shape costs one look-up.
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

#: Cached shapes that passed the check.
_FITTING_MAX = 50_000


def frames_of(tablets: Sequence[Tablet], *, joined: bool) -> list[TabletFrame]:
    """Return the frames of the non-empty tablets: joined, to be kept, or in parts, to be copied into an entry.

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
    """A cache of checked tablet shapes. Thread-safe: cache entries are immutable and replaced as a whole."""

    def __init__(self) -> None:
        #: By id of a tablet's shape: the device that it fits, the shape, the depth of the database.
        self._known: dict[int, tuple[DeviceSchema, FrameHead, int]] = {}

    def place(self, frames: Sequence[TabletFrame], schema: SchemaTree) -> list[PlacedTablet]:
        """Return the frames with their depths. Raises UserMistake like `depth`."""
        return [PlacedTablet(self.depth(frame.head, schema), frame) for frame in frames]

    def depth(self, head: FrameHead, schema: SchemaTree) -> int:
        """Return the number of leading nodes that form the device's database. Raises UserMistake (507, 508, 511)."""
        device = schema.device(head.device)
        fits = self._known.get(id(head))
        if fits is None or fits[0] is not device or fits[1] is not head:
            device = _check(device, head)
            if len(self._known) >= _FITTING_MAX:
                self._known.clear()
            fits = self._known[id(head)] = (device, head, len(split_path(device.database)))
        return fits[2]


def _check(device: DeviceSchema | None, head: FrameHead) -> DeviceSchema:
    """Return the device that tablets of this shape belong to. Raises UserMistake if they do not fit it."""
    if device is None:
        raise UserMistake(f"Path [{head.device}] does not exist", code=508)
    if device.aligned != head.aligned:
        kind = "aligned" if device.aligned else "not aligned"
        raise UserMistake(f"device {head.device} is {kind}; write to it with the same alignment", code=511)
    for measurement, type_ in zip(head.measurements, head.types, strict=True):
        found = device.series.get(measurement)
        if found is None:
            raise UserMistake(f"Path [{head.device}.{measurement}] does not exist", code=508)
        if (
            found.type is not type_ and type_ not in found.earlier
        ):  # tablets prepared before a change of type are accepted
            raise UserMistake(f"{head.device}.{measurement} is {found.type.name}, not {type_.name}", code=507)
    return device
