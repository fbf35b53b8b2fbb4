"""Privileges, and the areas of the tree on which they are granted.

    area     root.plant.pump1.pressure     exactly this path
             root.plant.**                 everything below root.plant, at any depth
             root.**                       everything

Other wildcards are refused, as in IoTDB: so it is decidable, and quick, whether one area covers another. Privileges
that are not about paths are granted on `root.**`. Who may write may read.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import parse_pattern


class Privilege(Enum):
    """What can be granted; the names are IoTDB's."""

    READ_DATA = "READ_DATA"
    WRITE_DATA = "WRITE_DATA"
    READ_SCHEMA = "READ_SCHEMA"
    WRITE_SCHEMA = "WRITE_SCHEMA"
    #: Create and drop databases.
    MANAGE_DATABASE = "MANAGE_DATABASE"
    #: Create, drop and list users; set the passwords of those who are no administrators.
    MANAGE_USER = "MANAGE_USER"
    #: Create, drop and list roles; hand them out.
    MANAGE_ROLE = "MANAGE_ROLE"
    #: Flush, see and end other users' queries, look at the cluster and the variables.
    MAINTAIN = "MAINTAIN"
    #: Register and drop functions that users wrote, which run in every query that calls them.
    USE_UDF = "USE_UDF"
    #: Register, drop and see triggers, which see what others write.
    USE_TRIGGER = "USE_TRIGGER"


EVERYWHERE = "root.**"
ON_PATHS = frozenset({Privilege.READ_DATA, Privilege.WRITE_DATA, Privilege.READ_SCHEMA, Privilege.WRITE_SCHEMA})
#: What a privilege contains beside itself.
CONTAINS = {Privilege.WRITE_DATA: Privilege.READ_DATA, Privilege.WRITE_SCHEMA: Privilege.READ_SCHEMA}
_SHORTHANDS = {
    "ALL": frozenset(Privilege),
    "READ": frozenset({Privilege.READ_DATA, Privilege.READ_SCHEMA}),
    "WRITE": frozenset({Privilege.WRITE_DATA, Privilege.WRITE_SCHEMA}),
    "SYSTEM": frozenset({Privilege.MANAGE_DATABASE, Privilege.MAINTAIN, Privilege.USE_UDF, Privilege.USE_TRIGGER}),
    "SECURITY": frozenset({Privilege.MANAGE_USER, Privilege.MANAGE_ROLE}),
}
_BELOW = ".**"


def parse_privileges(names: Iterable[str]) -> tuple[Privilege, ...]:
    """The privileges of these names, shorthands taken apart, in the order of the enum. Raises UserMistake 701."""
    found: set[Privilege] = set()
    for name in names:
        if name in _SHORTHANDS:
            found |= _SHORTHANDS[name]
        elif name in Privilege.__members__:
            found.add(Privilege[name])
        else:
            known = ", ".join([*Privilege.__members__, *_SHORTHANDS])
            raise UserMistake(f"there is no privilege {name}: there are {known}")
    return tuple(privilege for privilege in Privilege if privilege in found)


def parse_area(text: str) -> str:
    """The area's canonical text. Raises UserMistake 509 for other wildcards than `**` at the end."""
    pattern = parse_pattern(text)
    if parse_pattern(pattern.text.removesuffix(_BELOW)).has_wildcard:
        raise UserMistake(f"{text}: privileges are granted on one path, or on all below one: root.a.**", code=509)
    return pattern.text


def check_areas(privileges: Iterable[Privilege], areas: Iterable[str]) -> None:
    """Raise UserMistake 701 where a privilege that is not about paths is given for a part of the tree."""
    wide = [p.value for p in privileges if p not in ON_PATHS]
    if wide and any(area != EVERYWHERE for area in areas):
        raise UserMistake(f"{', '.join(wide)} cannot be had for a part of the tree: use ON {EVERYWHERE}")


def covers(area: str, other: str) -> bool:
    """Whether all that lies in the area `other` lies in `area`."""
    if not area.endswith(_BELOW):
        return area == other
    # Canonical texts: what begins with the same characters and a dot begins with the same nodes.
    return other.startswith(area[: -len("**")])


def top_of(area: str) -> tuple[str, bool]:
    """The path in the area's text, and whether the area is all below it (else just that path)."""
    return area.removesuffix(_BELOW), area.endswith(_BELOW)
