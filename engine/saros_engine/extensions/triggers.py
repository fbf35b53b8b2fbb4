"""User-defined triggers, and the batches that fire them. Triggers are stored as entries of the schema's catalogue.

    ("trigger", "limits")    {"name": "limits", "before": true, "path": "root.a.**", "entry": "limits", ...}

    tablet --firing--> None, nearly always; otherwise   before() -> the store writes the tablet -> after()

A trigger fires on the node that receives the write, once per batch and not once per row. A trigger gets the
measurements that its path matches. Loading, synchronising or restoring files fires no trigger.

Thread-safe.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from saros_engine.extensions.blocks import values_of
from saros_engine.extensions.installed import installed_trigger
from saros_engine.extensions.interface import Batch, Refused, Trigger
from saros_engine.extensions.trigger_dispatcher import TriggerDispatcher
from saros_grammar.syntax.ast import CreateTrigger
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import PathPattern, parse_pattern, split_path
from saros_storage.base.tablet import Tablet
from saros_storage.schema import Catalogue, SchemaChange, SetEntry

KIND = "trigger"
#: IoTDB's CREATE_TRIGGER_ERROR, DROP_TRIGGER_ERROR and TRIGGER_FIRE_ERROR.
_EXISTS, _MISSING, _FIRED = 1300, 1301, 1302
#: The maximum number of triggers, which is low because every batch is matched against all triggers.
TRIGGERS_MAX = 100
#: The number of batch shapes (device and measurements) whose triggers are cached.
_SHAPES_MAX = 10_000


class RegisteredTrigger(msgspec.Struct, frozen=True):
    """A trigger in the form in which the catalogue stores it."""

    name: str
    before: bool
    path: str
    entry: str
    attributes: Mapping[str, str]


def registered_triggers(catalogue: Catalogue) -> list[RegisteredTrigger]:
    """Return all triggers, sorted by name."""
    return [RegisteredTrigger(**json.loads(text)) for _, text in catalogue.all_of(KIND)]


def trigger_creation(statement: CreateTrigger, catalogue: Catalogue) -> list[SchemaChange]:
    """Return the schema change of CREATE TRIGGER.

    Raises UserMistake with code 1300 (the trigger exists, or there are too many), 1303 (not installed) or 701 (invalid
    attributes).
    """
    name = statement.name
    if catalogue.get(KIND, name) is not None:
        raise UserMistake(f"trigger {name} already exists: drop it first", code=_EXISTS)
    if len(catalogue.all_of(KIND)) >= TRIGGERS_MAX:
        raise UserMistake(f"there are already {TRIGGERS_MAX} triggers, the maximum: drop one first", code=_EXISTS)
    parse_pattern(str(statement.path))
    attributes = dict(statement.attributes)
    try:
        installed_trigger(statement.entry).check(attributes)
    except ValueError as error:
        raise UserMistake(f"trigger {name}: {error}") from error
    words = {"name": name, "before": statement.before, "path": str(statement.path), "entry": statement.entry}
    return [SetEntry(KIND, name, json.dumps({**words, "attributes": attributes}, ensure_ascii=False))]


def trigger_removal(name: str, catalogue: Catalogue) -> list[SchemaChange]:
    """Return the schema change of DROP TRIGGER. Raises UserMistake 1301 if there is no such trigger."""
    if catalogue.get(KIND, name) is None:
        raise UserMistake(f"trigger {name} doesn't exist: see SHOW TRIGGERS", code=_MISSING)
    return [SetEntry(KIND, name, None)]


class _Armed(msgspec.Struct, frozen=True):
    """A trigger with its parsed path."""

    registered: RegisteredTrigger
    pattern: PathPattern

    def matching(self, tablet: Tablet) -> tuple[int, ...]:
        """Return the indexes of the measurements for which the trigger fires."""
        nodes = split_path(tablet.device)
        return tuple(i for i, name in enumerate(tablet.measurements) if self.pattern.matches((*nodes, name)))


class Firing(msgspec.Struct, frozen=True):
    """The triggers to fire for one batch. For each trigger, the measurements to pass to it are recorded."""

    tablet: Tablet
    triggers: Sequence[tuple[RegisteredTrigger, tuple[int, ...]]]
    calls: TriggerDispatcher

    def before(self) -> None:
        """Call the BEFORE triggers.

        Raises UserMistake 1302 if a trigger refuses the batch or fails, and 1303 if a trigger is not installed on this
        node.
        """
        for trigger, numbers in self.triggers:
            if trigger.before:
                self._ask(trigger, numbers)

    def _ask(self, trigger: RegisteredTrigger, numbers: tuple[int, ...]) -> None:
        batch = f"{self.tablet.rows} rows for {self.tablet.device}"
        definition = _installed(trigger)
        try:
            definition.fire(self._batch(trigger, numbers))
        except Refused as refusal:
            raise UserMistake(f"trigger {trigger.name} refuses {batch}: {refusal}", code=_FIRED) from refusal
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".rstrip(": ")
            message = f"trigger {trigger.name} failed, so {batch} were not written: {reason}"
            raise UserMistake(message, code=_FIRED) from error

    def after(self) -> None:
        """Submit the written batch to the AFTER triggers."""
        for trigger, numbers in self.triggers:
            if trigger.before:
                continue
            try:
                definition = _installed(trigger)
            except UserMistake as error:
                self.calls.failed(trigger.name, error.message)
                continue
            # Copy the arrays: they may belong to the caller, which may reuse them after the write returns.
            batch = self._batch(trigger, numbers, copied=True)
            size = batch.times.nbytes + sum(self.tablet.columns[number].nbytes for number in numbers)
            self.calls.submit(trigger.name, size, partial(definition.fire, batch))

    def _batch(self, trigger: RegisteredTrigger, numbers: tuple[int, ...], *, copied: bool = False) -> Batch:
        tablet = self.tablet
        times = tablet.times.copy() if copied else tablet.times.view()
        times.flags.writeable = False
        columns = {n: _copied(tablet.columns[n]) if copied else tablet.columns[n] for n in numbers}
        values = {tablet.measurements[n]: values_of(column) for n, column in columns.items()}
        return Batch(trigger.name, trigger.attributes, trigger.before, tablet.device, times, values)


class Triggers:
    """The triggers of one node. `catalogue` returns the current catalogue."""

    def __init__(self, catalogue: Callable[[], Catalogue]) -> None:
        self._catalogue = catalogue
        self.calls = TriggerDispatcher()
        #: The last seen catalogue with its triggers, and the triggers for each batch shape.
        self._known: tuple[Catalogue | None, list[_Armed]] = (None, [])
        self._shapes: dict[tuple[str, tuple[str, ...]], list[tuple[RegisteredTrigger, tuple[int, ...]]]] = {}

    @property
    def exist(self) -> bool:
        """True if there are any triggers."""
        return bool(self._armed())

    def firing(self, tablet: Tablet) -> Firing | None:
        """Return the triggers to fire for a batch, or None if there are none."""
        armed = self._armed()
        if not armed:
            return None
        shapes, key = self._shapes, (tablet.device, tablet.measurements)
        found = shapes.get(key)
        if found is None:
            pairs = [(one.registered, one.matching(tablet)) for one in armed]
            found = [(trigger, numbers) for trigger, numbers in pairs if numbers]
            if len(shapes) >= _SHAPES_MAX:
                shapes.clear()
            shapes[key] = found
        return Firing(tablet, found, self.calls) if found else None

    def _armed(self) -> list[_Armed]:
        catalogue = self._catalogue()
        known, armed = self._known
        if catalogue is not known:
            armed = [_Armed(t, parse_pattern(t.path)) for t in registered_triggers(catalogue)]
            self._shapes = {}
            self._known = (catalogue, armed)
        return armed

    def rows(self) -> list[tuple[str, ...]]:
        """Return the rows of SHOW TRIGGERS: name, event, type, state on this node, path, entry point, node."""
        rows: list[tuple[str, ...]] = []
        for one in self._armed():
            trigger = one.registered
            event = "BEFORE_INSERT" if trigger.before else "AFTER_INSERT"
            rows.append((trigger.name, event, "STATELESS", self._state(trigger), trigger.path, trigger.entry, "ALL"))
        return rows

    def _state(self, trigger: RegisteredTrigger) -> str:
        try:
            _installed(trigger)
        except UserMistake as error:
            return f"INACTIVE: {error.message}"
        fired = self.calls.fired(trigger.name)
        state = "ACTIVE"
        if fired.failed:
            state += f", {fired.failed} calls failed, last: {fired.problem}"
        if fired.missed:
            state += f", {fired.missed} calls skipped because it was too slow"
        return state


def _installed(trigger: RegisteredTrigger) -> Trigger:
    try:
        return installed_trigger(trigger.entry)
    except UserMistake as error:
        message = f"trigger {trigger.name} cannot be fired on this node: {error.message}"
        raise UserMistake(message, code=error.code) from error


def _copied(column: Column) -> Column:
    valid = None if column.valid is None else column.valid.copy()
    # Texts need no copy here, because building them already copied them.
    return Column(column.type, column.values if column.type.is_text else column.numbers.copy(), valid)
