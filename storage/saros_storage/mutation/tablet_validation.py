"""Check tablets against the schema, and find the database of each tablet.

A tablet that was prepared before the type of a series changed may still use the former type; its data is then read like
data from before the change. Shapes that passed the check are cached, so that checking the next batch of the same shape
costs one look-up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import split_path
from saros_storage.base.tablet import MultiTablet, Tablet
from saros_storage.base.types import TIME_MAX, TIME_MIN, DataType
from saros_storage.mutation.multi_tablet_codec import frames_of_devices
from saros_storage.mutation.mutation import PlacedTablet
from saros_storage.mutation.tablet_codec import FrameHead, TabletFrame, encode_tablet
from saros_storage.schema import DeviceSchema, SchemaTree, SeriesSchema

#: Cached shapes that passed the check.
_FITTING_MAX = 50_000


def frames_of(tablets: Sequence[Tablet | MultiTablet], *, joined: bool) -> list[TabletFrame]:
    """Return the frames of the non-empty tablets, joined (for MemTables) or in parts (to copy into a log entry).

    Frames of a `MultiTablet` are always joined. Raises UserMistake 2007 for a time out of range.
    """
    frames: list[TabletFrame] = []
    for tablet in tablets:
        if isinstance(tablet, MultiTablet):
            frames += frames_of_devices(tablet)
        elif tablet.rows:
            frames.append(TabletFrame.of_bytes(encode_tablet(tablet)) if joined else TabletFrame.of_tablet(tablet))
    for frame in frames:
        start, end = frame.span.start, frame.span.end
        if start <= TIME_MIN or end >= TIME_MAX:
            time = start if start <= TIME_MIN else end
            raise UserMistake(f"time {time} of {frame.head.device} is out of range", code=2007)
    return frames


class TabletValidator:
    """A cache of checked tablet shapes. Thread-safe: cache entries are immutable and replaced as a whole."""

    def __init__(self) -> None:
        #: The shapes that passed the check: a device's series, and measurements and types that fit them. The key
        #: consists of the ids of the series' mapping and of the measurements. Devices created with the same series
        #: share the mapping.
        self._known: dict[
            tuple[int, int], tuple[Mapping[str, SeriesSchema], tuple[str, ...], tuple[DataType, ...]]
        ] = {}

    def place(self, frames: Sequence[TabletFrame], schema: SchemaTree) -> list[PlacedTablet]:
        """Return the frames with their depths. Raises the errors of `depth`."""
        return [PlacedTablet(self.depth(frame.head, schema), frame) for frame in frames]

    def depth(self, head: FrameHead, schema: SchemaTree) -> int:
        """Return the number of leading nodes that form the device's database. Raises UserMistake (507, 508, 511)."""
        device = schema.device(head.device)
        if device is None or device.aligned != head.aligned or not self._is_known(device.series, head):
            device = _check(device, head)
            if len(self._known) >= _FITTING_MAX:
                self._known.clear()
            self._known[id(device.series), id(head.measurements)] = device.series, head.measurements, head.types
        return len(split_path(device.database))

    def _is_known(self, series: Mapping[str, SeriesSchema], head: FrameHead) -> bool:
        fits = self._known.get((id(series), id(head.measurements)))
        return fits is not None and fits[0] is series and fits[1] is head.measurements and fits[2] is head.types


def _check(device: DeviceSchema | None, head: FrameHead) -> DeviceSchema:
    """Return `device` if tablets with this head fit it. Raises UserMistake if they do not."""
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
