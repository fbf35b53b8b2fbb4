"""Mutations of values of JSON."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 2**31, 2**63, -(2**63), 2**64, 1e308, "", "x", "'", "`", "\0", "root.**"),
    *(
        "é" * 100,
        "NaN",
        "9999-12-31",
        "0x0",
        "0xzz",
        [],
        {},
        [[]],
        [None],
        {"a": []},
        "a" * 70_000,
        "((((((",
        "TIMESTAMP",
    ),
    *(
        "DATE",
        "BLOB",
        "FLOAT",
        "STRING",
        "BOOLEAN",
        "select",
        ";",
        "--",
        "🎈",
        "\ud800".encode("utf-8", "replace").decode(),
    ),
]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield a pair of container and key for every place in a JSON value."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def mutated_json(randomness: random.Random, body: Any) -> Any:
    """Return a body in which one to three values are replaced or missing."""
    found = copy.deepcopy(body)
    for _ in range(randomness.randint(1, 3)):
        container, key = randomness.choice(list(places(found)) or [(None, None)])
        if container is None:
            return randomness.choice(VALUES)
        if randomness.random() < 0.2:
            del container[key]
        else:
            container[key] = copy.deepcopy(randomness.choice(VALUES))
    return found
