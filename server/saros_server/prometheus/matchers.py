"""Matchers of labels: =, !=, =~ and !~, with the semantics of PromQL.

A matcher treats a missing label as an empty text. Patterns are RE2 patterns, as in Prometheus, and must match the whole
value; a dot matches a newline as well. For every pattern, the time that Arrow takes is proportional to the size of the
values.

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

#: The maximum number of matchers in a query, and the maximum number of characters in a pattern.
MATCHERS_MAX = 64
PATTERN_CHARACTERS_MAX = 65_536

Labels = Mapping[str, str]


def pattern_of(matchers: Sequence[LabelMatcher]) -> str:
    """Return a path pattern that matches the devices of all series that the matchers can select."""
    names = [matcher.value for matcher in matchers if matcher.name == NAME_LABEL and matcher.type == LabelMatcher.EQ]
    if not names:
        return join_nodes((*ROOT, "**"))
    return join_nodes((*ROOT, quote_node(names[0]), "*") if names[0] else (*ROOT, "*"))


def selected(series: Mapping[str, Labels], matchers: Sequence[LabelMatcher]) -> dict[str, Labels]:
    """Return each series that satisfies all matchers, with its device as the key. Raises HttpError 400."""
    if len(matchers) > MATCHERS_MAX:
        raise HttpError(400, f"the query has {len(matchers)} matchers; at most {MATCHERS_MAX} are allowed")
    found = dict(series)
    for matcher in matchers:
        takes = _test(matcher, {labels.get(matcher.name, "") for labels in found.values()})
        found = {device: labels for device, labels in found.items() if takes(labels.get(matcher.name, ""))}
    return found


def _test(matcher: LabelMatcher, values: set[str]) -> Callable[[str], bool]:
    """Return a function that returns whether one of `values` satisfies a matcher.

    It must not be called with other values.

    Raises HttpError 400.
    """
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
    """Return the values that a pattern matches completely. Raises HttpError 400."""
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        size = f"{len(pattern)} characters; at most {PATTERN_CHARACTERS_MAX} are allowed"
        raise HttpError(400, f"the pattern {pattern[:60]!r}... has {size}")
    texts = pa.array(sorted(values), pa.string())
    try:
        pc.match_substring_regex(
            pa.scalar(""), pattern
        )  # check it alone: in the parentheses below, `a)|(b` would be valid
        mask = pc.match_substring_regex(texts, f"^(?s:{pattern})$")
    except pa.ArrowInvalid as error:
        raise HttpError(400, f"the pattern {pattern[:60]!r} is not one of RE2: {error}") from error
    return set(texts.filter(mask).to_pylist())
