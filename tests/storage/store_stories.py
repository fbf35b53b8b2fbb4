"""Stories (sequences of operations) for stores that will crash: with all operations, special ones, and random ones."""

from __future__ import annotations

from random import Random

from storage.store_drawing import drawn
from storage.store_model import (
    Operation,
    State,
    capture,
    create_database,
    delete_database,
    delete_points,
    delete_series,
    expire,
    flush,
    flush_database,
    keep_from,
    load,
    merge,
    write_batch,
    write_rows,
)


def story() -> list[Operation]:
    """Return a story in which each kind of operation affects data in files, and data that is not in files."""
    return [
        write_rows("root.a.d1", range(6), 1),
        write_batch(("root.a.d1", range(4, 9), 2), ("root.a.d2", range(5), 3), ("root.b.c.d1", range(95, 105), 4)),
        delete_points(["root.a.d1.x"], 2, 5),
        flush(),
        delete_points(["root.a.d1.x"], 0, 1),
        write_rows("root.b.c.d1", range(110, 160), 14),
        write_rows("root.b.c.d1", range(120, 170), 15),
        flush_database("root.b.c"),
        write_rows("root.a.d1", range(3, 12), 5),
        write_rows("root.a.d2", range(20, 70), 12),
        write_rows("root.a.d2", range(50, 95), 13),
        delete_points(["root.a.**"], 4, 8),
        write_rows("root.a.d2", range(3, 7), 6),
        delete_database("root.b.c"),
        create_database("root.b.c"),
        flush(),
        write_batch(("root.b.c.d1", range(90, 93), 7), ("root.a.d1", range(20, 60), 8), ("root.a.d1", (1, 150), 9)),
        delete_series("root.a.d1.y"),
        write_rows("root.a.d1", (5, 6, 70), 10),
        flush(),
        delete_database("root.a"),
        write_rows("root.a.d2", range(2), 11),
    ]


def merging_story() -> list[Operation]:
    """Return a story that merges overlapping files, late rows, and deletions."""
    return [
        write_rows("root.a.d1", range(30), 1),
        write_rows("root.a.d2", range(20), 2),
        flush(),
        write_rows("root.a.d1", range(10, 40), 3),
        write_rows("root.a.d2", range(20, 40), 4),
        flush(),
        delete_points(["root.a.*.x"], 5, 15),
        merge(),
        write_rows("root.a.d1", (3, 7, 50), 5),
        flush(),
        merge(),
        delete_database("root.a"),
    ]


def loading_story() -> list[Operation]:
    """Return a story that loads files, some over two slices, before, between and after other writes and deletions."""
    return [
        write_rows("root.a.d1", range(20, 30), 1),
        load(("root.a.d1", range(25, 45), 2), ("root.a.d2", range(30), 3)),
        write_rows("root.a.d1", range(40, 50), 4),
        flush(),
        load(("root.a.d1", range(90, 110, 2), 5)),
        capture(),
        delete_points(["root.a.d1.x"], 26, 28),
        load(("root.b.c.d1", range(10), 6)),
        write_rows("root.b.c.d1", range(5, 15), 7),
        merge(),
        delete_database("root.b.c"),
        load(("root.b.c.d1", range(3), 8)),
        flush(),
    ]


def expiring_story() -> list[Operation]:
    """Return a story that sets, changes and unsets TTLs.

    Some files expire completely, and some merged or loaded files expire partly.
    """
    return [
        write_rows("root.a.d1", range(40), 1),
        flush(),
        write_rows("root.a.d2", range(150), 2),
        keep_from("root.a.**", 30),
        flush(),
        keep_from("root.a.d1", 200),
        expire(),
        write_rows("root.a.d1", range(195, 206), 3),
        load(("root.a.d1", range(190, 210, 3), 4)),
        keep_from("root.a.**", 110),
        merge(),
        expire(),
        keep_from("root.a.d1", None),
        write_rows("root.a.d1", range(105, 115), 5),
        flush(),
        keep_from("root.a.**", 500),
        expire(),
    ]


def afterwards() -> list[Operation]:
    """Return operations to run after a crash. A flush of one database releases only that database's log entries."""
    return [
        write_batch(("root.a.d1", (1, 30), 21), ("root.b.c.d1", range(99, 102), 22)),
        flush_database("root.a"),
        flush(),
        delete_points(["root.**"], 0, 2),
        write_rows("root.a.d2", (0, 1, 2), 23),
        flush(),
    ]


def drawn_story(chance: Random, count: int, first_mark: int = 1) -> list[Operation]:
    """Draw operations that are possible one after the other on an empty store."""
    state = State()
    told = []
    for mark in range(first_mark, first_mark + count):
        operation = drawn(chance, state, mark)
        told.append(operation)
        for change in operation.changes:
            state = change(state)
    return told
