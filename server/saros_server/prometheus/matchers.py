"""Matchers of labels: =, !=, =~ and !~, as PromQL means them.

A label that a series lacks is the empty text to a matcher. Patterns are RE2's, as Prometheus' are, and must match the
whole value; a dot matches a newline, too. Arrow runs them, in time linear in the values, whatever the pattern.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from saros_server.http.errors import HttpError
from saros_server.prometheus.series import NAME_LABEL, ROOT
from saros_storage.base.paths import join_nodes, quote_node
from saros_wire.generated.prometheus_pb2 import LabelMatcher

#: Matchers of a query, and characters of a pattern.
MATCHERS_MAX = 64
PATTERN_CHARACTERS_MAX = 65_536

Labels = Mapping[str, str]


def pattern_of(matchers: Sequence[LabelMatcher]) -> str:
    """Return a pattern of paths that all devices match whose series the matchers can take."""
    names = [matcher.value for matcher in matchers if matcher.name == NAME_LABEL and matcher.type == LabelMatcher.EQ]
    if not names:
        return join_nodes((*ROOT, "**"))
    return join_nodes((*ROOT, quote_node(names[0]), "*") if names[0] else (*ROOT, "*"))


def selected(series: Mapping[str, Labels], matchers: Sequence[LabelMatcher]) -> dict[str, Labels]:
    """Return the series, by device, that all matchers take. Raises HttpError 400."""
    if len(matchers) > MATCHERS_MAX:
        raise HttpError(400, f"the query has {len(matchers)} matchers; at most {MATCHERS_MAX} are allowed")
    found = dict(series)
    for matcher in matchers:
        takes = _test(matcher, {labels.get(matcher.name, "") for labels in found.values()})
        found = {device: labels for device, labels in found.items() if takes(labels.get(matcher.name, ""))}
    return found


def _test(matcher: LabelMatcher, values: set[str]) -> Callable[[str], bool]:
    """Return a test of values, all of which are among `values`."""
    match matcher.type:
        case LabelMatcher.EQ:
            return matcher.value.__eq__
        case LabelMatcher.NEQ:
            return matcher.value.__ne__
        case LabelMatcher.RE:
            return _matching(matcher.value, values).__contains__
        case LabelMatcher.NRE:
            return (values - _matching(matcher.value, values)).__contains__
        case unknown:
            raise HttpError(400, f"matcher type {unknown} is unknown: use =, !=, =~ or !~ (0 to 3)")


def _matching(pattern: str, values: set[str]) -> set[str]:
    """Return the values that a pattern matches as a whole. Raises HttpError 400."""
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        size = f"{len(pattern)} characters; at most {PATTERN_CHARACTERS_MAX} are allowed"
        raise HttpError(400, f"the pattern {pattern[:60]!r}... has {size}")
    texts = pa.array(sorted(values), pa.string())
    try:
        pc.match_substring_regex(pa.scalar(""), pattern)  # alone: in the parentheses, `a)|(b` would be legal
        mask = pc.match_substring_regex(texts, f"^(?s:{pattern})$")
    except pa.ArrowInvalid as error:
        raise HttpError(400, f"the pattern {pattern[:60]!r} is not one of RE2: {error}") from error
    return set(texts.filter(mask).to_pylist())
