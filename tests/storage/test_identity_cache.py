"""A cache of results whose key is the identity of an argument."""

from __future__ import annotations

from saros_storage.base.identity_cache import cached_by_identity


def test_a_result_is_computed_once_for_each_object() -> None:
    computed = []

    @cached_by_identity(8)
    def length(items: tuple[int, ...]) -> int:
        computed.append(items)
        return len(items)

    first = (1, 2)
    second = first[:1] + first[1:]
    assert [2, 2, 2, 2] == [length(items) for items in (first, second, first, second)]
    assert [first, second] == computed


def test_no_more_results_are_kept_than_allowed() -> None:
    computed = []

    @cached_by_identity(2)
    def length(items: tuple[int, ...]) -> int:
        computed.append(items)
        return len(items)

    many = [(number,) for number in range(5)]
    assert [1] * 5 == [length(items) for items in many]
    assert 1 == length(many[0])
    assert [*many, many[0]] == computed
