"""TTL rules: each sets the time to live of the points below a prefix of device paths.

The most specific rule for a device applies.

    root.**            30 days        device root.db.a.d1  ->  1 hour
    root.db.a.**       1 hour                root.db.b     ->  30 days
    root.db.c          INF                   root.db.c     ->  unlimited

A pattern is a device path, or a prefix followed by `.**`, which covers all devices below the prefix. Each rule has a
number. Of several rules for one pattern, the rule with the highest number applies; replicas that receive rules in
different orders therefore end up with the same rules. A removed rule stays with its number, marked as unset. If two
writers that did not know of each other chose the same number, an unset rule takes precedence over others, and a longer
time to live over a shorter one.

An immutable value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import join_nodes, parse_pattern, split_path

#: Maximum number of patterns with a rule, as in IoTDB.
RULES_MAX = 1_000
#: Maximum number of patterns that have or had a rule.
PATTERNS_MAX = 10_000
_BELOW = ".**"


class TtlRule(msgspec.Struct, frozen=True):
    """A numbered version of a rule. `milliseconds` is None for an unlimited life; `unset` marks a removed rule."""

    number: int
    milliseconds: int | None = None
    unset: bool = False

    @property
    def order(self) -> tuple[int, bool, float]:
        """Sort key: of two versions of a rule, the one with the greater key applies."""
        return self.number, self.unset, float("inf") if self.milliseconds is None else self.milliseconds


class TtlRules(msgspec.Struct, frozen=True):
    """The rule of each pattern, including removed rules."""

    by_pattern: Mapping[str, TtlRule] = msgspec.field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether any rule limits the life of points."""
        return any(rule.milliseconds is not None for rule in self.by_pattern.values())

    def live(self) -> list[tuple[str, int | None]]:
        """Return pattern and milliseconds of every rule, sorted by pattern."""
        return [(p, rule.milliseconds) for p, rule in sorted(self.by_pattern.items()) if not rule.unset]

    def number(self, pattern: str) -> int:
        """Return the number of the pattern's rule; 0 if the pattern never had a rule."""
        rule = self.by_pattern.get(pattern)
        return 0 if rule is None else rule.number

    def check(self, pattern: str) -> None:
        """Raise UserMistake: 303 for a wildcard other than a final `.**`, or 701 if there are too many rules."""
        path = pattern.removesuffix(_BELOW)
        if "*" in "".join(node for node in parse_pattern(path).nodes if not node.startswith("`")):
            raise UserMistake(f"{pattern}: a TTL applies to one path, or to all paths below one (root.db.**)", code=303)
        if pattern in self.by_pattern:
            return
        if len(self.live()) >= RULES_MAX or len(self.by_pattern) >= PATTERNS_MAX:
            raise UserMistake(f"there are {len(self.live())} TTL rules already: at most {RULES_MAX} are allowed")

    def with_rule(self, pattern: str, rule: TtlRule) -> TtlRules:
        """Return the rules with this rule added, or `self` if it already has a newer version of the rule."""
        known = self.by_pattern.get(pattern)
        if known is not None and known.order > rule.order:
            return self
        return TtlRules({**self.by_pattern, pattern: rule})

    def milliseconds(self, device: str) -> int | None:
        """Return the time to live of a device's points in milliseconds, or None if it is unlimited."""
        nodes = split_path(device)
        for pattern in (device, *_prefixes(nodes)):
            rule = self.by_pattern.get(pattern)
            if rule is not None and not rule.unset:
                return rule.milliseconds
        return None


def _prefixes(nodes: tuple[str, ...]) -> Iterable[str]:
    """Yield the `.**` patterns that cover a device, longest prefix first."""
    return (join_nodes(nodes[:count]) + _BELOW for count in range(len(nodes) - 1, 0, -1))
