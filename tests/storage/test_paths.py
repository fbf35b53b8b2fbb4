from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import (
    PATH_CHARACTERS_MAX,
    join_nodes,
    parent_of,
    parse_pattern,
    plain_nodes,
    quote_node,
    split_path,
    split_series,
    unquote_node,
)


@pytest.mark.parametrize(
    ("content", "node"),
    [
        ("s1", "s1"),
        ("_a", "_a"),
        ("温度", "温度"),
        ("1a", "1a"),
        ("111", "`111`"),
        ("1e3", "`1e3`"),
        ("012", "`012`"),
        ("+1", "`+1`"),
        ("a.b", "`a.b`"),
        ("s 1", "`s 1`"),
        ("a`b", "`a``b`"),
        ("*", "`*`"),
        ("", "``"),
    ],
)
def test_only_what_needs_quotes_gets_them(content: str, node: str) -> None:
    assert (node, content) == (quote_node(content), unquote_node(node))


_CONTENTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)


@given(st.lists(_CONTENTS, max_size=5))
def test_any_contents_make_a_path_that_splits_into_them(contents: list[str]) -> None:
    nodes = ("root", *(quote_node(c) for c in contents))
    assert nodes == split_path(join_nodes(nodes))


def test_needless_quotes_go() -> None:
    assert ("root", "a", "`b.c`") == split_path("root.`a`.`b.c`")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "missing at character 1"),
        ("sg.d1", "does not begin with root"),
        ("root..d1", "missing at character 6"),
        ("root.d1.", "missing at character 9"),
        ("root.a b", "must be back-quoted: `a b`"),
        ("root.111", "must be back-quoted: `111`"),
        ("root.`a", "missing at character 6"),
        ("root.`a`b", "a dot is missing at character 9"),
        ("root.``", "a node is empty"),
        ("root.*", "wildcard"),
        ("root." + "a" * PATH_CHARACTERS_MAX, "characters; at most"),
    ],
)
def test_an_illegal_path_is_refused_with_the_place(text: str, what: str) -> None:
    with pytest.raises(UserMistake, match=re.escape(what)) as caught:
        split_path(text)
    assert 509 == caught.value.code


def test_a_series_is_a_device_and_a_measurement() -> None:
    assert ("root.sg.`a.b`", "s1") == split_series("root.sg.`a.b`.s1")
    with pytest.raises(UserMistake, match="at least"):
        split_series("root.s1")


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("root.sg.d1", "root.sg.d1", True),
        ("root.sg.d1", "root.sg.d2", False),
        ("root.sg.*", "root.sg.d1", True),
        ("root.sg.*", "root.sg.d1.s1", False),
        ("root.sg.*", "root.sg", False),
        ("root.sg.**", "root.sg", False),
        ("root.sg.**", "root.sg.d1", True),
        ("root.sg.**", "root.sg.d1.x.y", True),
        ("root.**.s1", "root.a.b.s1", True),
        ("root.**.s1", "root.s1", False),
        ("root.**.s1", "root.a.b.s2", False),
        ("root.**.a.**", "root.a.a.a", True),
        ("root.**.a.**", "root.b.b.a", False),
        ("root.l*.*f*.*1", "root.ln.wf01.wt01", True),
        ("root.l*.*f*.*1", "root.ln.wf01.wt02", False),
        ("root.`*`", "root.`*`", True),
        ("root.`*`", "root.a", False),
        ("root.a*", "root.`a.b`", True),
    ],
)
def test_patterns(pattern: str, path: str, matches: bool) -> None:
    assert matches == parse_pattern(pattern).matches(split_path(path))


def test_many_double_stars_stay_cheap() -> None:
    pattern = parse_pattern("root" + ".**.a" * 60)
    assert not pattern.matches(("root", *("a", "b") * 200))


def test_many_stars_in_a_node_stay_cheap() -> None:
    """Backtracking would try every choice of 12 places among 1,000."""
    pattern = parse_pattern("root." + "*a" * 12 + "*b.s")
    assert not pattern.matches(("root", "b" + "a" * 1_000, "s"))
    assert pattern.matches(("root", "b" + "a" * 1_000 + "b", "s"))


def test_stars_in_a_node_match_as_those_of_a_shell() -> None:
    nodes = ["".join(letters) for size in range(5) for letters in product("ab", repeat=size)]
    globs = ["".join(signs) for size in range(2, 6) for signs in product("ab*", repeat=size)]
    patterns = [glob for glob in globs if "*" in glob and set(glob) != {"*"}]
    expected = {(glob, node) for glob in patterns for node in nodes if node and fnmatchcase(node, glob)}
    found = {
        (glob, node)
        for glob in patterns
        for node in nodes
        if node and parse_pattern(f"root.{glob}").matches(("root", node))
    }
    assert expected == found


def test_equal_text_means_equal_pattern() -> None:
    assert parse_pattern("root.`a`.*") == parse_pattern("root.a.*")
    assert {parse_pattern("root.**")} == {parse_pattern("root.**")}
    assert (True, False) == (parse_pattern("root.a*").has_wildcard, parse_pattern("root.`*`").has_wildcard)


@pytest.mark.parametrize("read", [split_path, parse_pattern])
def test_a_zero_byte_is_refused(read: Callable[[str], object]) -> None:
    with pytest.raises(UserMistake, match=re.escape(r"root.`a\0b` is not a legal path: it has a zero byte")) as refused:
        read("root.`a\0b`")
    assert 509 == refused.value.code


TEXTS = ["root", "root.a", "root.a.b1", "root.é_1", "root.1a", "root.a.1", "root.a.`b.c`", "root.a\nroot.b", "root.a."]


@given(st.lists(st.sampled_from([*TEXTS, "", "a", "root.*", "root." + "x" * PATH_CHARACTERS_MAX]), max_size=4))
def test_plain_paths_are_those_of_letters_that_need_no_quotes(texts: list[str]) -> None:
    plain = [text in ("root", "root.a", "root.a.b1", "root.é_1") for text in texts]
    if texts and all(plain):
        assert {node for text in texts for node in split_path(text)} == plain_nodes(texts)
    else:
        assert plain_nodes(texts) is None


@pytest.mark.parametrize(
    "path", ["root.a", "root.a.b", "root.a.`b.c`", "root.`a.b`.c", "root.`a.``.b`.`c`", "root.`.`"]
)
def test_the_parent_of_a_path_has_all_nodes_but_the_last(path: str) -> None:
    assert join_nodes(split_path(path)[:-1]) == parent_of(path)
