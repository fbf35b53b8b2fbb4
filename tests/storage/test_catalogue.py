"""The schema's catalogue survives encoding, and is the same whatever the order of changes."""

from __future__ import annotations

import pytest
from storage.schema_entries import merged_in_any_order, reloaded

from saros_storage.base.errors import UserMistake
from saros_storage.schema import SchemaChange, SchemaTree, SetEntry
from saros_storage.schema.catalogue import ENTRIES_MAX, TEXT_MAX, Catalogue, Entry


def test_changes_and_dump_come_back() -> None:
    changes: list[SchemaChange] = [
        SetEntry("template", "t1", '{"columns": []}', 7),
        SetEntry("template on", "root.`a b`", "t1", 1),
        SetEntry("template", "gone", None, 3),
    ]
    tree, again = reloaded(changes)
    assert tree.catalogue == again.catalogue
    assert [("t1", '{"columns": []}')] == again.catalogue.all_of("template")
    assert again.catalogue.get("template", "gone") is None
    assert 3 == again.catalogue.number("template", "gone")


def test_any_order_of_arrival_ends_in_the_same_entries() -> None:
    texts = (("a", 1), ("b", 2), (None, 2), ("c", 3), ("d", 3), (None, 3))
    changes = [SetEntry("k", "x", text, number) for text, number in texts] + [SetEntry("k", "y", "only", 1)]
    assert [("x", "d"), ("y", "only")] == merged_in_any_order(changes).catalogue.all_of("k")


def test_a_change_gets_a_number_above_the_one_it_replaces() -> None:
    tree = SchemaTree()
    tree.apply(SetEntry("k", "x", "old", 4))
    assert [SetEntry("k", "x", None, 5), SetEntry("k", "y", "new", 1)] == tree.numbered(
        [SetEntry("k", "x", None), SetEntry("k", "y", "new")]
    )


def test_what_has_no_room_is_refused() -> None:
    tree = SchemaTree()
    with pytest.raises(UserMistake, match="at most"):
        tree.check(SetEntry("k", "x", "." * (TEXT_MAX + 1)))
    tree.catalogue = Catalogue({("k", str(number)): Entry(1, "text") for number in range(ENTRIES_MAX)})
    tree.check(SetEntry("k", "0", "other"))
    with pytest.raises(UserMistake, match="similar entries"):
        tree.check(SetEntry("k", "other", "text"))
