"""Privileges, and the areas of the tree on which they are granted.

    area     root.plant.pump1.pressure     exactly this path
             root.plant.**                 everything below root.plant, at any depth
             root.**                       everything

Other wildcards are refused, as in IoTDB. So it is easy and fast to decide whether one area covers another. Privileges
that are not about paths are granted on `root.**`. Write privileges include the corresponding read privileges.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import parse_pattern


class Privilege(Enum):
    """A privilege that can be granted. The names are IoTDB's."""

    READ_DATA = "READ_DATA"
    WRITE_DATA = "WRITE_DATA"
    READ_SCHEMA = "READ_SCHEMA"
    WRITE_SCHEMA = "WRITE_SCHEMA"
    #: Create and drop databases.
    MANAGE_DATABASE = "MANAGE_DATABASE"
    #: Create, drop and list users; set the passwords of users that are not administrators.
    MANAGE_USER = "MANAGE_USER"
    #: Create, drop and list roles; grant them.
    MANAGE_ROLE = "MANAGE_ROLE"
    #: Flush, see and kill other users' queries, view the cluster and the variables.
    MAINTAIN = "MAINTAIN"
    #: Register and drop user-defined functions, which run in every query that calls them.
    USE_UDF = "USE_UDF"
    #: Register, drop and see triggers, which see the writes of other users.
    USE_TRIGGER = "USE_TRIGGER"
    #: Create, drop and see continuous queries, which run with their creator's privileges.
    USE_CQ = "USE_CQ"
    # Privileges of IoTDB for statements that Saros does not have. They can be granted and listed, but have no effect.
    USE_PIPE = "USE_PIPE"
    USE_MODEL = "USE_MODEL"
    EXTEND_TEMPLATE = "EXTEND_TEMPLATE"


EVERYWHERE = "root.**"
ON_PATHS = frozenset({Privilege.READ_DATA, Privilege.WRITE_DATA, Privilege.READ_SCHEMA, Privilege.WRITE_SCHEMA})
#: For each privilege that includes another one, the included privilege.
CONTAINS = {Privilege.WRITE_DATA: Privilege.READ_DATA, Privilege.WRITE_SCHEMA: Privilege.READ_SCHEMA}
_OF_USERS = frozenset({Privilege.MANAGE_USER, Privilege.MANAGE_ROLE})
_SHORTHANDS = {
    "ALL": frozenset(Privilege),
    "READ": frozenset({Privilege.READ_DATA, Privilege.READ_SCHEMA}),
    "WRITE": frozenset({Privilege.WRITE_DATA, Privilege.WRITE_SCHEMA}),
    "SYSTEM": frozenset(Privilege) - ON_PATHS - _OF_USERS,
    "SECURITY": _OF_USERS,
}
_BELOW = ".**"


def parse_privileges(names: Iterable[str]) -> tuple[Privilege, ...]:
    """Return the privileges with these names, with shorthands expanded, in the order of the enum.

    Raises UserMistake 700.
    """
    found: set[Privilege] = set()
    for name in names:
        if name in _SHORTHANDS:
            found |= _SHORTHANDS[name]
        elif name in Privilege.__members__:
            found.add(Privilege[name])
        else:
            known = ", ".join([*Privilege.__members__, *_SHORTHANDS])
            raise UserMistake(f"privilege {name} does not exist; the privileges are {known}", code=700)
    return tuple(privilege for privilege in Privilege if privilege in found)


def parse_area(text: str) -> str:
    """Return the area's canonical text. Raises UserMistake 303 for other wildcards than `**` at the end."""
    pattern = parse_pattern(text)
    if parse_pattern(pattern.text.removesuffix(_BELOW)).has_wildcard:
        raise UserMistake(f"{text}: a privilege applies to one path, or to all paths below one (root.a.**)", code=303)
    return pattern.text


def check_areas(privileges: Iterable[Privilege], areas: Iterable[str]) -> None:
    """Raise UserMistake 701 if a privilege that is not about paths is given for a part of the tree."""
    wide = [p.value for p in privileges if p not in ON_PATHS]
    if wide and any(area != EVERYWHERE for area in areas):
        raise UserMistake(f"{', '.join(wide)} cannot be granted on a part of the tree; use ON {EVERYWHERE}")


def covers(area: str, other: str) -> bool:
    """Return whether everything in the area `other` is also in `area`."""
    if not area.endswith(_BELOW):
        return area == other
    # Texts are canonical, so a text that begins with the characters of another text and a dot also begins with the
    # nodes of that text.
    return other.startswith(area[: -len("**")])


def top_of(area: str) -> tuple[str, bool]:
    """Return the path in the area's text, and whether the area is everything below the path (or just that path)."""
    return area.removesuffix(_BELOW), area.endswith(_BELOW)
