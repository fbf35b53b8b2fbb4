"""Device templates: lists of series that all devices of one kind share.

Templates are entries of the schema's catalogue.

    create    ("template", t1) = its columns                  set    ("template on", root.sg) = t1
    activate  a device at or below root.sg gets t1's series, by CREATE TIMESERIES USING or by a write to the device

A device *uses* the template that is set at or above its path if the device exists, is aligned like the template, and
has all series of the template with their types. Whether a device uses a template is derived from the schema, not
stored. A template may be empty until series are added; no device uses an empty template, and activating it has no
effect. Templates do not nest: a template cannot be set at, above or below a path on which another template is set.

If two nodes change templates at the same time, both statements may succeed, and the later change takes effect.
These functions work on a store, and any thread may call them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec
from msgspec.structs import astuple

from saros_engine.base.authorized_schema import SchemaReader
from saros_engine.base.database import Database
from saros_engine.catalog.declared_series import series_of
from saros_grammar.syntax import ast
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import PathPattern, check_path, join_nodes, parse_pattern, split_path, split_series
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.base.write_request import WriteRequest
from saros_storage.schema import (
    LEGAL_ENCODINGS,
    CreateSeries,
    Deadband,
    DeviceSchema,
    SchemaChange,
    SeriesSchema,
    SetEntry,
    check_deadband,
)

_TEMPLATE, _PLACE = "template", "template on"
_PATH_EXISTS, _METADATA, _ILLEGAL_PATH, _CREATING, _UNDEFINED, _NOT_SET = 506, 507, 509, 510, 512, 513
_IN_USE, _INCOMPATIBLE, _NOT_ACTIVATED, _MEASUREMENT_EXISTS = 515, 516, 524, 527


class Template(msgspec.Struct, frozen=True):
    """A device template: the series of each device that uses it."""

    name: str
    aligned: bool
    series: tuple[SeriesSchema, ...]

    def text(self) -> str:
        """Return the text that represents the template in the catalogue."""
        return json.dumps(
            {"aligned": self.aligned, "columns": list(map(_series_to_json, self.series))}, ensure_ascii=False
        )

    def find(self, measurement: str) -> SeriesSchema | None:
        """Return the template's series for a measurement, if it has one."""
        return next((s for s in self.series if s.measurement == measurement), None)

    def is_used_by(self, device: DeviceSchema) -> bool:
        """Return whether a device uses the template."""
        return (
            bool(self.series)
            and device.aligned == self.aligned
            and all((own := device.series.get(s.measurement)) is not None and own.type is s.type for s in self.series)
        )


def _series_to_json(series: SeriesSchema) -> list[object]:
    words: list[object] = [series.measurement, series.type.name, series.encoding.name, series.compressor.name]
    if series.decimals is not None or series.deadband is not None:
        words += [series.decimals, None if series.deadband is None else astuple(series.deadband)]
    return words


def _parsed(name: str, text: str) -> Template:
    words = json.loads(text)
    return Template(name, words["aligned"], tuple(_series_of(*column) for column in words["columns"]))


def _series_of(
    name: str,
    type_: str,
    encoding: str,
    compressor: str,
    decimals: int | None = None,
    deadband: tuple[float, int, int] | None = None,
) -> SeriesSchema:
    return SeriesSchema(
        name,
        DataType[type_],
        Encoding[encoding],
        Compressor[compressor],
        decimals=decimals,
        deadband=None if deadband is None else Deadband(*deadband),
    )


# ---------------------------------------------------------------------------------------------- looking


def templates(schema: SchemaReader) -> list[str]:
    """Return the names of all templates."""
    return [name for name, _ in schema.catalogue.all_of(_TEMPLATE)]


def template(schema: SchemaReader, name: str) -> Template:
    """Return the template with this name. Raises UserMistake 512."""
    text = schema.catalogue.get(_TEMPLATE, name)
    if text is None:
        raise UserMistake(f"Undefined template name: {name}; see SHOW DEVICE TEMPLATES", code=_UNDEFINED)
    return _parsed(name, text)


def places(schema: SchemaReader, name: str) -> list[str]:
    """Return the paths on which a template is set."""
    return [path for path, of in schema.catalogue.all_of(_PLACE) if of == name]


def template_for(schema: SchemaReader, device: str) -> Template | None:
    """Return the template that is set at or above a device's path, if there is one."""
    found = _entry_for(schema, device)
    return None if found is None else _parsed(*found)


def template_name_for(schema: SchemaReader, device: str) -> str | None:
    """Return the name of the template that is set at or above a device's path, if there is one."""
    found = _entry_for(schema, device)
    return None if found is None else found[0]


def _entry_for(schema: SchemaReader, device: str) -> tuple[str, str] | None:
    """Return the name and the text of the template that is set at or above a device's path."""
    catalogue = schema.catalogue
    if not catalogue.by_key:
        return None
    nodes = split_path(device)
    for count in range(len(nodes), 1, -1):
        name = catalogue.get(_PLACE, join_nodes(nodes[:count]))
        text = None if name is None else catalogue.get(_TEMPLATE, name)
        if name is not None and text is not None:
            return name, text
    return None


def used_by(schema: SchemaReader, device: DeviceSchema) -> str | None:
    """Return the name of the template that a device uses, if any."""
    found = template_for(schema, device.path)
    return found.name if found is not None and found.is_used_by(device) else None


def given_by(schema: SchemaReader, device: DeviceSchema, measurement: str) -> str | None:
    """Return the name of the template that a device's series belongs to.

    Return None if the device uses no template, or if its template does not have the series.
    """
    found = template_for(schema, device.path)
    if found is None or found.find(measurement) is None or not found.is_used_by(device):
        return None
    return found.name


# ---------------------------------------------------------------------------------------------- changing


def change_templates(store: Database, statement: ast.TemplateStatement, request: WriteRequest) -> int:
    """Execute a statement about templates; return the number of objects that it changed. Raises UserMistake."""
    match statement:
        case ast.CreateTemplate():
            return _create(store, statement, request)
        case ast.AlterTemplate():
            return _alter(store, statement, request)
        case ast.DropTemplate(name):
            template(store.schema, name)
            if places(store.schema, name):
                where = ", ".join(places(store.schema, name))
                raise UserMistake(f"template {name} is set to {where}: unset it first", code=_METADATA)
            store.change_schema([SetEntry(_TEMPLATE, name, None)], request=request)
        case ast.SetTemplate():
            _set(store, statement, request)
        case ast.UnsetTemplate():
            _unset(store, statement, request)
        case ast.ActivateTemplate(path):
            return _activate(store, path, request)
        case ast.DeactivateTemplate():
            return _deactivate(store, statement, request)
    return 1


def _create(store: Database, statement: ast.CreateTemplate, request: WriteRequest) -> int:
    if store.schema.catalogue.get(_TEMPLATE, statement.name) is not None:
        raise UserMistake(f"Duplicated template name: {statement.name}", code=_METADATA)
    made = Template(statement.name, statement.aligned, _series(statement.columns, aligned=statement.aligned))
    store.change_schema([SetEntry(_TEMPLATE, made.name, made.text())], request=request)
    return 1


def _series(columns: Sequence[ast.SeriesColumn], *, aligned: bool) -> tuple[SeriesSchema, ...]:
    found = tuple(series_of(column) for column in columns)
    names = [series.measurement for series in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserMistake(f"measurement {twice} is in the template twice", code=_ILLEGAL_PATH)
    for series in found:
        if series.encoding not in LEGAL_ENCODINGS[series.type]:
            message = f"measurement {series.measurement}: encoding {series.encoding.name} does not support"
            raise UserMistake(f"{message} {series.type.name}", code=_CREATING)
        check_path(series.measurement)
        check_deadband(series.measurement, series, aligned=aligned)
    return found


def _alter(store: Database, statement: ast.AlterTemplate, request: WriteRequest) -> int:
    """Add series to a template and to the devices that use it."""
    old = template(store.schema, statement.name)
    added = _series(statement.columns, aligned=old.aligned)
    known = next((s.measurement for s in added if old.find(s.measurement) is not None), None)
    if known is not None:
        raise UserMistake(f"template {old.name} already has a measurement {known}", code=_MEASUREMENT_EXISTS)
    new = Template(old.name, old.aligned, (*old.series, *added))
    devices = [device for place in places(store.schema, old.name) for device in _users(store, place, old)]
    store.change_schema([SetEntry(_TEMPLATE, new.name, new.text())], request=request)
    if devices:
        creations = [_creation(device.path, new, device) for device in devices]
        store.change_schema(creations, request=request.unnumbered)
    return 1


def _creation(device: str, wanted: Template, known: DeviceSchema | None) -> CreateSeries:
    missing = tuple(s for s in wanted.series if known is None or s.measurement not in known.series)
    return CreateSeries(device, wanted.aligned, missing, if_missing=True)


def _users(store: Database, place: str, wanted: Template) -> list[DeviceSchema]:
    """Return the devices at or below a path that use a template."""
    found = [store.schema.device(place), *store.schema.match_devices(parse_pattern(f"{place}.**"))]
    return [device for device in found if device is not None and wanted.is_used_by(device)]


def _set(store: Database, statement: ast.SetTemplate, request: WriteRequest) -> None:
    schema, path = store.schema, str(statement.path)
    wanted = template(schema, statement.name)
    if schema.database_of(path) is None:
        raise UserMistake(f"{path} is not in a database: create one first", code=504)
    for place, name in schema.catalogue.all_of(_PLACE):
        if place == path and name == wanted.name:
            raise UserMistake(f"template {name} is already set to {path}", code=_METADATA)
        if f"{place}.".startswith(f"{path}.") or f"{path}.".startswith(f"{place}."):
            raise UserMistake(
                f"template {name} is set to {place}, and templates cannot be nested: choose another path",
                code=_METADATA,
            )
    found = [schema.device(path), *schema.match_devices(parse_pattern(f"{path}.**"))]
    taken = next((device for device in found if device is not None), None)
    if taken is not None:
        message = f"{taken.path} already has series: a template can only be set where there are none"
        raise UserMistake(message, code=_INCOMPATIBLE)
    store.change_schema([SetEntry(_PLACE, path, wanted.name)], request=request)


def _unset(store: Database, statement: ast.UnsetTemplate, request: WriteRequest) -> None:
    path = str(statement.path)
    wanted = template(store.schema, statement.name)
    if store.schema.catalogue.get(_PLACE, path) != wanted.name:
        raise UserMistake(f"template {wanted.name} is not set to {path}", code=_NOT_SET)
    users = _users(store, path, wanted)
    if users:
        message = f"template {wanted.name} is used by {users[0].path}: deactivate it there first"
        raise UserMistake(message, code=_IN_USE)
    store.change_schema([SetEntry(_PLACE, path, None)], request=request)


def forget_places(store: Database, database: str, request: WriteRequest) -> None:
    """Unset the templates at and below a database that was dropped."""
    found = [path for path, _ in store.schema.catalogue.all_of(_PLACE) if f"{path}.".startswith(f"{database}.")]
    if found:
        store.change_schema([SetEntry(_PLACE, path, None) for path in found], request=request)


def _activate(store: Database, path: ast.PathExpression, request: WriteRequest) -> int:
    if path.has_wildcard:
        raise UserMistake(f"{path} is a pattern: name one device", code=509)
    device = join_nodes(path.nodes)
    parent, measurement = split_series(device)
    above = store.schema.device(parent)
    if above is not None and measurement in above.series:
        raise UserMistake(f"Path [{device}] already exist", code=_PATH_EXISTS)
    wanted = template_for(store.schema, device)
    if wanted is None:
        raise UserMistake(f"no template is set to {device} or above it: set one first", code=_METADATA)
    if not wanted.series:
        return 0
    known = store.schema.device(device)
    if known is not None and wanted.is_used_by(known):
        raise UserMistake(f"template {wanted.name} is already activated on {device}", code=_IN_USE)
    store.change_schema([_creation(device, wanted, known)], request=request)
    return len(wanted.series)


def _deactivate(store: Database, statement: ast.DeactivateTemplate, request: WriteRequest) -> int:
    """Drop the series of the template, with their points, from the matching devices that use it."""
    schema = store.schema
    if statement.name is not None:
        template(schema, statement.name)
    count = 0
    for path in statement.paths:
        for device in schema.match_devices(parse_pattern(str(path))):
            found = template_for(schema, device.path)
            if found is None or statement.name not in (None, found.name) or not found.is_used_by(device):
                continue
            count += 1
            for series in found.series:
                store.delete_series(f"{device.path}.{series.measurement}", request=request)
    if not count:
        name = "a template" if statement.name is None else f"template {statement.name}"
        where = ", ".join(str(path) for path in statement.paths)
        set_there = {
            of
            for place, of in schema.catalogue.all_of(_PLACE)
            if statement.name in (None, of)
            and any(PathPattern(path.nodes).reaches(split_path(place)) for path in statement.paths)
        }
        if not set_there:
            raise UserMistake(f"{name} is not set to a prefix of {where}", code=_NOT_SET)
        if any(template(schema, of).series for of in set_there):
            raise UserMistake(f"no device of {where} uses {name}", code=_NOT_ACTIVATED)
    return count


# ---------------------------------------------------------------------------------------------- writing


def with_template(
    schema: SchemaReader, device: str, known: DeviceSchema | None, missing: Sequence[SeriesSchema], *, aligned: bool
) -> list[SchemaChange]:
    """Return the schema changes that a write to a device needs to create missing series.

    If one of the missing series belongs to the device's template, the changes create all series of the template.
    """
    wanted = template_for(schema, device) if missing else None
    if wanted is None or wanted.aligned != aligned or not any(wanted.find(s.measurement) for s in missing):
        return [CreateSeries(device, aligned, tuple(missing), if_missing=True)] if missing else []
    extra = [s for s in missing if wanted.find(s.measurement) is None]
    creation = _creation(device, wanted, known)
    return [CreateSeries(device, aligned, (*creation.series, *extra), if_missing=True)]
