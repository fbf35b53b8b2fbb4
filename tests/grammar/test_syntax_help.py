from __future__ import annotations

import pytest

from saros_grammar.syntax_help import syntax_of, topics


@pytest.mark.parametrize(
    ("topic", "line"),
    [
        ("delete from", "DELETE FROM path[, ...] [WHERE expression]"),
        ("create database", "CREATE DATABASE path [WITH pair[, ...]]"),
        ("drop user", "{DELETE | DROP} {USER | ROLE} name"),
        ("explain", "EXPLAIN [ANALYZE [VERBOSE]] statement"),
        ("Show Child", "SHOW CHILD {PATHS | NODES} [path] [show_clause ...]"),
        ("merge", "[FULL] MERGE [path[, ...]] [ON {LOCAL | CLUSTER}]"),
    ],
)
def test_the_syntax_of_a_statement(topic: str, line: str) -> None:
    assert line == syntax_of(topic)[0]


def test_the_rules_of_a_statement_are_explained_once_in_the_order_of_their_use() -> None:
    lines = syntax_of("select")
    assert "SELECT [LAST] select_item[, ...] [into] [sources] [clause ...]" == lines[0]
    explained = [line.split()[0] for line in lines if " is " in line]
    assert ["select_item", "into", "target"] == explained[:3]
    assert len(set(explained)) == len(explained)
    assert "    GROUP BY grouping[, ...]" in lines
    assert "    LEVEL = number[, ...]" in lines


@pytest.mark.parametrize(
    ("topic", "line", "explained"),
    [
        ("group by", "GROUP BY grouping[, ...]", "  grouping is one of"),
        ("Order By", "ORDER BY sort_key[, ...]", "  sort_key is expression [ASC | DESC] [NULLS {FIRST | LAST}]"),
        ("limit", "{LIMIT | OFFSET | SLIMIT | SOFFSET} row_count", "  row_count is one of"),
        ("into", "INTO target[, ...]", "  target is [ALIGNED] target_path (target_node[, ...])"),
    ],
)
def test_the_syntax_of_a_clause(topic: str, line: str, explained: str) -> None:
    lines = syntax_of(topic)
    assert [line, "", "where", explained] == lines[:4]


def test_a_clause_without_rules_is_one_line() -> None:
    assert ["WHERE expression"] == syntax_of("where")


def test_a_word_that_begins_no_statement_has_no_syntax() -> None:
    assert [] == syntax_of("nonsense")
    assert [] == syntax_of("")
    assert [] == syntax_of("database")


def test_every_statement_is_a_topic_and_every_line_reads_as_syntax() -> None:
    assert {"SELECT", "INSERT", "DELETE", "DROP", "SHOW", "EXPLAIN", "FULL", "MERGE"} <= set(topics())
    for topic in topics():
        for line in syntax_of(topic):
            assert "COMMA" not in line
            assert "PARENTHESIS" not in line
            assert "EQUAL" not in line
