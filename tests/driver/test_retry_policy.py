"""The decision whether a failed call is retried, which depends on the kind of its statement."""

from __future__ import annotations

import pytest

import saros
from saros.base.statement_kind import Kind, kind_of
from saros.transport.exchange import CallFailed, Fate
from saros.transport.retry_policy import LOST_MAX, Failure, Memory, RetryPolicy, failure_of
from saros_wire.generated import client_pb2
from saros_wire.status import STATUS


def coded(code: int) -> Failure:
    return failure_of(CallFailed(Fate.ANSWERED, "words", code=code), "h:1")


def unsent(address: str = "h:1") -> Failure:
    return failure_of(CallFailed(Fate.NOT_SENT, "failed to connect: Connection refused"), address)


def lost(address: str = "h:1", silent_s: float = 0.0) -> Failure:
    return failure_of(CallFailed(Fate.LOST, "connection closed", silent_s=silent_s), address)


LOST, NOT_SENT = lost(), unsent()
HERE, ELSEWHERE, CLUSTER = Memory(7), Memory(8), Memory(0)


@pytest.mark.parametrize(
    ("failure", "after_s", "tries"),
    [
        (coded(2017), 30.5, 0),  # the node waited for other nodes as long as the call allowed
        (coded(2017), 90.0, 1),  # the node was executing the call
        (LOST, 30.5, 1),  # the node was silent
        (LOST, 5.0, 1),
    ],
)
def test_the_attempts_at_a_read_share_its_limit(failure: Failure, after_s: float, tries: int) -> None:
    read = RetryPolicy(30.0, deadline=30.0, grace_s=2.0)
    if not tries:
        with pytest.raises(saros.OperationalError) as caught:
            read.failed(failure, CLUSTER, after_s)
        assert 2017 == caught.value.code
        return
    read.failed(failure, CLUSTER, after_s)
    assert max(30.0, after_s + 30.0 if after_s > 30.0 else 0.0) == read.deadline
    with pytest.raises(saros.OperationalError):
        read.failed(failure, CLUSTER, read.deadline + 5.0)  # later failures do not move the deadline again


def test_the_limit_of_a_read_never_goes_beyond_its_time_out() -> None:
    read = RetryPolicy(30.0, deadline=30.0, end=40.0, grace_s=2.0)
    read.failed(LOST, CLUSTER, 35.0)
    assert 40.0 == read.deadline


@pytest.mark.parametrize(
    ("failure", "now", "is_last"),
    [
        (coded(2017), 9.5, False),
        (coded(2017), 9.8, True),  # another attempt would only time out, with a less informative error
        (LOST, 9.8, False),  # another node may answer at once
    ],
)
def test_a_read_keeps_the_answer_that_comes_just_before_its_timeout(
    failure: Failure, now: float, is_last: bool
) -> None:
    read = RetryPolicy(30.0, deadline=10.0, end=10.0, grace_s=2.0)
    if not is_last:
        read.failed(failure, CLUSTER, now)
        return
    with pytest.raises(saros.OperationalError) as caught:
        read.failed(failure, CLUSTER, now)
    assert failure.error.code == caught.value.code


def test_a_read_that_slots_moved_from_is_sent_again_and_a_statement_that_writes_is_not() -> None:
    RetryPolicy(30.0, deadline=30.0, grace_s=2.0).failed(coded(2026), CLUSTER, 1.0)
    with pytest.raises(saros.OperationalError) as caught:
        RetryPolicy(30.0, write=True, deadline=30.0).failed(coded(2026), CLUSTER, 1.0)
    assert 2026 == caught.value.code


@pytest.mark.parametrize("code", sorted(STATUS))
def test_three_codes_are_retryable(code: int) -> None:
    assert (code in (2014, 2016, 2017)) is coded(code).retryable
    assert code == coded(code).error.code


def test_a_call_that_failed_may_have_had_an_effect_if_the_node_got_it() -> None:
    found = {fate: failure_of(CallFailed(fate), "h:1") for fate in Fate if fate is not Fate.ANSWERED}
    assert {
        Fate.NOT_SENT: (2016, True, False, False),
        Fate.LOST: (2016, True, True, True),
        Fate.LATE: (2016, True, False, True),
        Fate.CANCELLED: (715, False, False, False),
        Fate.BROKEN: (2000, False, False, True),
        Fate.TOO_LARGE: (2000, False, False, False),
    } == {
        fate: (failure.error.code, failure.retryable, failure.lost, failure.effect) for fate, failure in found.items()
    }


def test_a_call_is_tried_until_its_patience_ends() -> None:
    attempts = RetryPolicy(30.0)
    attempts.failed(NOT_SENT, None, 100.0)
    attempts.failed(coded(2017), HERE, 129.9)
    with pytest.raises(saros.OperationalError) as caught:
        attempts.failed(NOT_SENT, None, 130.0)
    assert 2016 == caught.value.code


def test_other_codes_end_it() -> None:
    with pytest.raises(saros.DataError):
        RetryPolicy(30.0).failed(coded(507), HERE, 0.0)


def test_a_call_that_breaks_connections_is_not_sent_for_ever() -> None:
    attempts = RetryPolicy(30.0)
    for _ in range(LOST_MAX - 1):
        attempts.failed(LOST, HERE, 0.0)
        attempts.failed(LOST, None, 0.0)  # the session could not be opened, so the call is not the cause
    with pytest.raises(saros.OperationalError, match="connection closed"):
        attempts.failed(LOST, HERE, 0.0)


def final_error(attempts: RetryPolicy, failure: Failure, memory: Memory | None, now: float) -> saros.Error:
    with pytest.raises(saros.Error) as caught:
        attempts.failed(failure, memory, now)
    return caught.value


def test_an_error_says_for_how_long_a_node_was_silent() -> None:
    frozen = lost(silent_s=4.5)
    assert "the node at h:1 has not answered for 4 s: connection closed" == str(frozen.error)
    attempts = RetryPolicy(30.0)
    attempts.failed(frozen, HERE, 100.0)
    attempts.failed(NOT_SENT, HERE, 110.0)
    error = final_error(attempts, NOT_SENT, HERE, 130.5)
    assert "the node at h:1 has not answered for 35 s: failed to connect: Connection refused" == str(error)
    restarted = RetryPolicy(30.0)
    restarted.failed(NOT_SENT, HERE, 100.0)
    restarted.failed(coded(2014), HERE, 120.0)
    error = final_error(restarted, NOT_SENT, None, 130.0)
    assert "no Saros node answers at h:1: failed to connect: Connection refused" == str(error)


def test_an_error_names_all_silent_nodes() -> None:
    attempts = RetryPolicy(30.0)
    attempts.failed(NOT_SENT, None, 100.0)
    attempts.failed(lost("h:2"), HERE, 101.0)
    assert (
        "the node at h:2 has not answered for 29 s: connection closed; "
        "the node at h:1 has not answered for 30 s: failed to connect: Connection refused"
    ) == str(final_error(attempts, NOT_SENT, None, 130.0))


def test_the_answer_of_a_node_tells_more_than_the_silence_of_another() -> None:
    attempts = RetryPolicy(30.0)
    attempts.failed(coded(2017), HERE, 100.0)
    error = final_error(attempts, lost("h:2"), None, 130.0)
    assert (2017, "words") == (error.code, str(error))


def test_an_insert_whose_outcome_a_node_of_a_cluster_does_not_know_is_sent_again() -> None:
    insert = RetryPolicy(30.0, write=True, insert=True, deadline=30.0)
    insert.failed(coded(2018), CLUSTER, 1.0)
    insert.failed(coded(2017), CLUSTER, 2.0)
    error = final_error(insert, coded(2017), CLUSTER, 30.0)
    assert (2018, "it is unknown whether the write was executed: words") == (error.code, str(error))
    for attempts, memory in (
        (RetryPolicy(30.0, write=True, insert=True, deadline=30.0), HERE),
        (RetryPolicy(30.0, write=True), CLUSTER),
    ):
        error = final_error(attempts, coded(2018), memory, 1.0)
        assert (2018, "words") == (error.code, str(error))


def partial(*, final: bool = False) -> Failure:
    """Return the failure of a call when a node has written only some of the call's rows."""
    written = [client_pb2.RowRanges(device="root.a", starts=[1], ends=[1])]
    missing = [client_pb2.RowRanges(device="root.a", starts=[2, 9], ends=[3, 9])]
    rows = client_pb2.PartialWrite(written=written, missing=missing, final=final)
    return failure_of(CallFailed(Fate.ANSWERED, "words", code=2020, partial_write=rows), "h:1")


def test_the_error_of_a_partial_write_names_the_missing_rows() -> None:
    error = partial().error
    assert isinstance(error, saros.PartialWriteError)
    assert ((saros.RowRange("root.a", 1, 1),), (saros.RowRange("root.a", 2, 3), saros.RowRange("root.a", 9, 9))) == (
        error.written,
        error.missing,
    )
    bare = coded(2020).error
    assert isinstance(bare, saros.PartialWriteError)
    assert ((), ()) == (bare.written, bare.missing)


@pytest.mark.parametrize("failure", [partial(), coded(2020), coded(2021), coded(2026)])
def test_an_insert_that_a_cluster_has_not_finished_is_sent_again_until_its_deadline(failure: Failure) -> None:
    insert = RetryPolicy(30.0, write=True, insert=True, deadline=30.0)
    insert.failed(failure, CLUSTER, 29.0)
    assert failure.error is final_error(insert, failure, CLUSTER, 30.0)
    for attempts, memory in (
        (RetryPolicy(30.0, write=True, insert=True, deadline=30.0), HERE),
        (RetryPolicy(30.0, write=True, deadline=30.0), CLUSTER),
    ):
        assert failure.error is final_error(attempts, failure, memory, 1.0)


def test_missing_rows_that_would_be_refused_again_are_not_sent_again() -> None:
    insert = RetryPolicy(30.0, write=True, insert=True, deadline=30.0)
    refused = partial(final=True)
    assert refused.error is final_error(insert, refused, CLUSTER, 1.0)


@pytest.mark.parametrize("later", [coded(2017), coded(2018), LOST, NOT_SENT])
def test_an_insert_that_was_done_in_part_ends_as_such_whatever_failed_before_and_after(later: Failure) -> None:
    insert = RetryPolicy(30.0, write=True, insert=True, deadline=30.0)
    insert.failed(LOST, CLUSTER, 1.0)
    failure = partial()
    insert.failed(failure, CLUSTER, 2.0)
    assert failure.error is final_error(insert, later, CLUSTER, 30.0)


def test_a_lost_write_goes_only_where_it_is_remembered() -> None:
    attempts = RetryPolicy(30.0, write=True)
    attempts.check_node(HERE)
    attempts.failed(NOT_SENT, HERE, 0.0)
    attempts.check_node(ELSEWHERE)  # allowed, because nothing was sent yet
    attempts.failed(LOST, HERE, 0.0)
    attempts.check_node(HERE)
    for other in (ELSEWHERE, CLUSTER):
        with pytest.raises(saros.OperationalError) as caught:
            attempts.check_node(other)
        assert 2018 == caught.value.code


def test_after_a_lost_write_only_its_own_mistake_is_certain() -> None:
    attempts = RetryPolicy(30.0, write=True)
    attempts.failed(LOST, CLUSTER, 0.0)
    with pytest.raises(saros.OperationalError) as caught:
        attempts.failed(coded(611), CLUSTER, 1.0)
    assert 2018 == caught.value.code
    with pytest.raises(saros.DataError):
        attempts.failed(coded(507), CLUSTER, 1.0)
    with pytest.raises(saros.OperationalError) as caught:
        attempts.failed(NOT_SENT, None, 31.0)
    assert 2018 == caught.value.code


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("select 1", Kind.READ),
        ("  -- a\n/* b\n */ SELECT x from root.a", Kind.READ),
        ("show time zone", Kind.READ),
        ("count devices", Kind.READ),
        ("explain select x from root.a", Kind.READ),
        ("select x into root.b(y) from root.a", Kind.JOB),
        ("load 'a.tsfile'", Kind.JOB),
        ("insert into root.a(time, x) values (1, 1)", Kind.INSERT),
        ("-- a\nINSERT into root.a(time, x) values (1, 1)", Kind.INSERT),
        ("delete from root.a.x", Kind.WRITE),
        ("set storage group to root.a", Kind.WRITE),
        ("flush", Kind.REPEATABLE),
        ("Merge root.a", Kind.REPEATABLE),
        ("full /* all */ merge", Kind.REPEATABLE),
        ("full", Kind.WRITE),
        ("SET TIME ZONE 'Asia/Tokyo'", Kind.SETTING),
        ("set/**/time -- a\n zone = '+1:00'", Kind.SETTING),
        ("set time_zone = UTC", Kind.SETTING),
        ("set allow partial results true", Kind.SETTING),
        ("set time", Kind.WRITE),
        ("", Kind.WRITE),
        ("/* never closed", Kind.WRITE),
    ],
)
def test_kind_of_a_statement(text: str, kind: Kind) -> None:
    assert kind is kind_of(text)
    assert (kind in (Kind.INSERT, Kind.JOB, Kind.WRITE)) is kind_of(text).is_write
