"""The privileges that one user has directly and through roles, compiled into sets of texts.

    granted READ_DATA on root.a.** and root.b.d.s      below {root.a}   exactly {root.b.d.s}

A path is allowed if it is granted exactly, or if a path above it is granted together with everything below. This takes
one look-up per node of the path, for any number of grants. An administrator may do everything.

Paths are canonical texts. A path can be cut at every dot: a cut at a dot inside back-quotes yields a text that is not a
path and never matches. Immutable. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from saros_cluster.users.privileges import CONTAINS, EVERYWHERE, ON_PATHS, Privilege, covers, top_of
from saros_storage.base.paths import join_nodes, parse_pattern


class Granted(msgspec.Struct, frozen=True):
    """One privilege on one area. If `option`, the holder may grant the privilege to others."""

    privilege: Privilege
    area: str
    option: bool = False


class _Areas(msgspec.Struct):
    """The areas of one privilege."""

    exactly: set[str] = msgspec.field(default_factory=set)
    #: Paths below which everything is allowed.
    below: set[str] = msgspec.field(default_factory=set)
    #: All paths above an allowed path.
    above: set[str] = msgspec.field(default_factory=set)

    def add(self, area: str) -> None:
        path, everything = top_of(area)
        (self.below if everything else self.exactly).add(path)
        self.above.update(_above(path))
        if everything:
            self.above.add(path)


class Rights:
    """The effective privileges of one user."""

    def __init__(self, grants: Iterable[Granted], *, administrator: bool = False) -> None:
        self.administrator = administrator
        self.grants = tuple(grants)
        self._areas: dict[Privilege, _Areas] = {}
        for granted in self.grants:
            self._areas.setdefault(granted.privilege, _Areas()).add(granted.area)
            contained = CONTAINS.get(granted.privilege)
            if contained is not None:
                self._areas.setdefault(contained, _Areas()).add(granted.area)

    def may(self, privilege: Privilege, path: str = EVERYWHERE) -> bool:
        """Return whether the user has the privilege for a path.

        The path does not matter if the privilege is not about paths.
        """
        if self.administrator:
            return True
        areas = self._areas.get(privilege)
        if areas is None:
            return False
        return privilege not in ON_PATHS or path in areas.exactly or not areas.below.isdisjoint(_above(path))

    def may_below(self, privilege: Privilege, path: str) -> bool:
        """Return whether the user has the privilege for everything below a path."""
        if self.administrator:
            return True
        areas = self._areas.get(privilege)
        return areas is not None and (path in areas.below or not areas.below.isdisjoint(_above(path)))

    def may_all(self, privilege: Privilege, pattern: str) -> bool:
        """Return whether the user has the privilege for everything that a pattern can match, existing or not."""
        if self.administrator:
            return True
        parsed = parse_pattern(pattern)
        if not parsed.has_wildcard:
            return self.may(privilege, parsed.text)
        areas = self._areas.get(privilege)
        if areas is None:
            return False
        fixed = next(i for i, node in enumerate(parsed.nodes) if "*" in node and not node.startswith("`"))
        return any(join_nodes(parsed.nodes[:count]) in areas.below for count in range(1, fixed + 1))

    def sees(self, privilege: Privilege, path: str) -> bool:
        """Return whether the user has the privilege for the path, or for a path below it."""
        if self.may(privilege, path):
            return True
        areas = self._areas.get(privilege)
        return areas is not None and path in areas.above

    def may_pass_on(self, privilege: Privilege, area: str) -> bool:
        """Return whether the user may grant the privilege on the area to others."""
        return self.administrator or any(
            granted.option and granted.privilege is privilege and covers(granted.area, area) for granted in self.grants
        )


def _above(path: str) -> Iterator[str]:
    """Yield the paths above a path, from the root down."""
    end = path.find(".")
    while end >= 0:
        yield path[:end]
        end = path.find(".", end + 1)
