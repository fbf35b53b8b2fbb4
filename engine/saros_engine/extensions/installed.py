"""Load definitions of functions and triggers by the names of their entry points in installed packages.

    [project.entry-points."saros.functions"]
    celsius = "plant_functions:celsius"          CREATE FUNCTION celsius AS 'celsius'

SQL can only name an entry point, so code comes only from packages installed on the machine. A loaded entry point is
cached for the life of the process, so using another version of a package needs a restart.

Any thread.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from saros_engine.extensions.interface import (
    AggregateFunction,
    FunctionDefinition,
    ScalarFunction,
    SeriesFunction,
    Trigger,
)
from saros_storage.base.errors import UserMistake

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

FUNCTIONS, TRIGGERS = "saros.functions", "saros.triggers"
#: IoTDB's UDF_LOAD_CLASS_ERROR and TRIGGER_LOAD_CLASS_ERROR.
_CODES = {FUNCTIONS: 1200, TRIGGERS: 1303}
#: The number of entry points to cache (more than packages define), and the number of names that an error message lists.
_KEPT, _LISTED = 1_024, 20


def installed_function(entry: str) -> FunctionDefinition:
    """Return the function that an entry point names. Raises UserMistake 1200 if it cannot be loaded."""
    thing = _installed(FUNCTIONS, entry)
    if isinstance(thing, ScalarFunction | SeriesFunction | AggregateFunction):
        return thing
    raise _wrong(FUNCTIONS, entry, thing, "a ScalarFunction, SeriesFunction or AggregateFunction")


def installed_trigger(entry: str) -> Trigger:
    """Return the trigger that an entry point names. Raises UserMistake 1303 if it cannot be loaded."""
    thing = _installed(TRIGGERS, entry)
    if isinstance(thing, Trigger):
        return thing
    raise _wrong(TRIGGERS, entry, thing, "a Trigger")


def check_installed(group: str, entry: str) -> None:
    """Raise UserMistake 1200 or 1303 unless this process can load the entry point as the `group` requires."""
    if group == FUNCTIONS:
        installed_function(entry)
    else:
        installed_trigger(entry)


@lru_cache(_KEPT)
def _installed(group: str, entry: str) -> object:
    from importlib.metadata import entry_points  # this import is slow, because it imports the email package

    found = {point.value: point for point in entry_points(group=group, name=entry)}
    if len(found) == 1:
        return _loaded(group, *found.values())
    if found:
        message = f"'{entry}' is an entry point of several packages: {', '.join(sorted(found))}"
        raise UserMistake(f"{message}; uninstall all but one", code=_CODES[group])
    names = sorted({point.name for point in entry_points(group=group)})
    known = f"there are {', '.join(names[:_LISTED])}" if names else "there are none"
    message = f"no installed package has the entry point '{entry}' in the group {group} ({known})"
    raise UserMistake(f"{message}: install it, and restart", code=_CODES[group])


def _loaded(group: str, point: EntryPoint) -> object:
    try:
        thing: object = point.load()
    except Exception as error:
        message = f"'{point.name}' is {point.value}, which cannot be loaded: {type(error).__name__}: {error}"
        raise UserMistake(message, code=_CODES[group]) from error
    return thing


def _wrong(group: str, entry: str, thing: object, wanted: str) -> UserMistake:
    return UserMistake(f"'{entry}' must be {wanted}, not {type(thing).__name__}", code=_CODES[group])
