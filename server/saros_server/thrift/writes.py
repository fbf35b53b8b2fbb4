"""The calls that write data: tablets, records, and records of texts, for one device or many.

    request --decoded as a whole--> inserts, in rounds --> INSERT, INSERT_MANY --> a status for each part, one of all

A request that cannot be decoded writes nothing. Otherwise the parts of a request are independent. If a part fails, the
others are written nevertheless, and the answer is MULTIPLE_ERROR with the status of each part. A part is a tablet or a
record; records of one device that fit into one insert share its status.

Texts are converted to the type of their series. A new series gets the type that an SQL INSERT of the same values would
give it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from saros_engine.writes.batches import failure_of_others
from saros_server.api import operations
from saros_server.api.errors import BadMessage
from saros_server.api.insert_checks import measurements_of
from saros_server.api.insert_request import InsertRequest
from saros_server.api.iotdb_codes import UNSUPPORTED
from saros_server.api.operations import InsertOutcome
from saros_server.api.quoting import path, string, whole_number
from saros_server.thrift.queries import statuses_of
from saros_server.thrift.records import RecordReader, RecordsMessage, check_lengths
from saros_server.thrift.sessions import ThriftSession, WrongCall
from saros_server.thrift.status_codes import DONE, failure, merged, success
from saros_server.thrift.structs import (
    InsertRecord,
    InsertRecords,
    InsertRecordsOfOneDevice,
    InsertStringRecord,
    InsertStringRecords,
    InsertStringRecordsOfOneDevice,
    InsertTablet,
    InsertTablets,
    Status,
)
from saros_server.thrift.tablets import TabletMessage, insert_of

#: Inserts of different devices, each with the numbers of its parts.
Round = list[tuple[InsertRequest, list[int]]]

#: The maximum number of rows of an INSERT for records of texts.
_ROWS_MAX = 1_000
#: Texts that match this pattern are SQL literals without quotes; all other texts become strings.
_LITERAL = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|true|false|nan|x'(?:[0-9a-f]{2})*'", re.IGNORECASE)
_QUOTED = re.compile(r"'.*'|\".*\"", re.DOTALL)


# ---------------------------------------------------------------------------------------------- tablets


def insert_tablet(session: ThriftSession, request: InsertTablet) -> Status:
    """Call `insertTablet`."""
    if request.to_table:
        raise WrongCall(UNSUPPORTED, "Saros has no table model: insert the tablet into a device of the tree model")
    if request.compressed:
        raise WrongCall(UNSUPPORTED, "the tablet is compressed, which Saros cannot read: turn compression off")
    message = TabletMessage(
        request.device,
        request.aligned,
        request.measurements,
        request.types,
        request.rows,
        request.times,
        request.values,
    )
    return _write_one(session, insert_of(message))


def insert_tablets(session: ThriftSession, request: InsertTablets) -> Status:
    """Call `insertTablets`: each tablet is a part."""
    lists = (request.measurements, request.types, request.rows, request.times, request.values)
    check_lengths("tablets", len(request.devices), lists)
    inserts = [
        insert_of(TabletMessage(device, request.aligned, *parts))
        for device, *parts in zip(request.devices, *lists, strict=True)
    ]
    return merged(_write(session, _rounds(inserts), len(inserts)))


def _rounds(inserts: Sequence[InsertRequest]) -> list[Round]:
    """Return inserts with the numbers of their parts, in rounds: inserts of one device are in consecutive rounds."""
    rounds: list[Round] = []
    next_round: dict[str, int] = {}
    for part, insert in enumerate(inserts):
        device = path(insert.device)
        number = next_round.get(device, 0)
        next_round[device] = number + 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append((insert, [part]))
    return rounds


# ---------------------------------------------------------------------------------------------- records


def insert_record(session: ThriftSession, request: InsertRecord) -> Status:
    """Call `insertRecord`."""
    if request.to_table:
        raise WrongCall(UNSUPPORTED, "Saros has no table model: insert the record into a device of the tree model")
    message = RecordsMessage(
        [request.device], [request.measurements], [request.values], [request.time], request.aligned
    )
    reader = RecordReader(message)
    return _write_one(session, reader.insert_of(reader.groups()[0]))


def insert_records(session: ThriftSession, request: InsertRecords) -> Status:
    """Call `insertRecords`: each record is a part."""
    return _insert_records(
        session,
        RecordsMessage(request.devices, request.measurements, request.values, request.times, request.aligned),
    )


def insert_records_of_one_device(session: ThriftSession, request: InsertRecordsOfOneDevice) -> Status:
    """Call `insertRecordsOfOneDevice`: each record is a part."""
    devices = [request.device] * len(request.times)
    return _insert_records(
        session, RecordsMessage(devices, request.measurements, request.values, request.times, request.aligned)
    )


def _insert_records(session: ThriftSession, message: RecordsMessage) -> Status:
    reader = RecordReader(message)
    rounds = [
        [(reader.insert_of(group), group.records) for group in groups]
        for _, groups in groupby(reader.groups(), lambda group: group.round)
    ]
    return merged(_write(session, rounds, len(message.devices)))


# ---------------------------------------------------------------------------------------------- records of texts


def insert_string_record(session: ThriftSession, request: InsertStringRecord) -> Status:
    """Call `insertStringRecord`."""
    message = InsertStringRecords(
        0, [request.device], [request.measurements], [request.values], [request.time], request.aligned
    )
    return _insert_texts(session, message)[0]


def insert_string_records(session: ThriftSession, request: InsertStringRecords) -> Status:
    """Call `insertStringRecords`: each record is a part."""
    return merged(_insert_texts(session, request))


def insert_string_records_of_one_device(session: ThriftSession, request: InsertStringRecordsOfOneDevice) -> Status:
    """Call `insertStringRecordsOfOneDevice`: each record is a part."""
    devices = [request.device] * len(request.times)
    message = InsertStringRecords(0, devices, request.measurements, request.values, request.times, request.aligned)
    return merged(_insert_texts(session, message))


def _insert_texts(session: ThriftSession, request: InsertStringRecords) -> list[Status]:
    """Return the status of each record. If this raises BadMessage or UserMistake, nothing was written."""
    parts = list(_statements(request))
    statuses = statuses_of([statement for statement, _ in parts], session.run)
    return [status for status, (_, records) in zip(statuses, parts, strict=True) for _ in range(records)]


def _statements(request: InsertStringRecords) -> Iterator[tuple[str, int]]:
    """Yield an INSERT for each run of records with the same device and measurements, and its number of records."""
    check_lengths("records", len(request.devices), (request.measurements, request.values, request.times))
    shapes = [
        (path(device), measurements_of(tuple(names)))
        for device, names in zip(request.devices, request.measurements, strict=True)
    ]
    keywords = ("aligned", "values") if request.aligned else ("values",)
    for (device, names), run in groupby(range(len(shapes)), shapes.__getitem__):
        records = list(run)
        for start in range(0, len(records), _ROWS_MAX):
            part = records[start : start + _ROWS_MAX]
            rows = ", ".join(_row(request.times[record], names, request.values[record]) for record in part)
            target = f"{device}({', '.join(('time', *names))})"
            yield " ".join(("insert into", target, *keywords, rows)), len(part)


def _row(time: int, names: Sequence[str], values: Sequence[str]) -> str:
    if len(values) != len(names):
        raise BadMessage(f"a record has {len(names)} measurements and {len(values)} values")
    return f"({', '.join((whole_number(time), *map(_literal, values)))})"


def _literal(text: str) -> str:
    """Return a text as an SQL literal."""
    if _LITERAL.fullmatch(text):
        return text
    return string(text[1:-1] if _QUOTED.fullmatch(text) else text)


# ---------------------------------------------------------------------------------------------- writing


def _write_one(session: ThriftSession, insert: InsertRequest) -> Status:
    """Write an insert. Raises its errors."""
    return success(session.call(operations.INSERT, insert).leader)


def _write(session: ThriftSession, rounds: Sequence[Round], parts: int) -> list[Status]:
    """Write inserts of several parts; return the status of each part. Raises NoSession, NotLoggedIn.

    After a failure that would also delay and fail every remaining round (`failure_of_others`), the remaining rounds are
    not written.
    """
    statuses = [DONE] * parts
    others: Exception | None = None
    for inserts in rounds:
        outcomes: list[InsertOutcome | Exception]
        if others is None:
            outcomes = session.call(operations.INSERT_MANY, [insert for insert, _ in inserts])
            failures = (failure_of_others(outcome) for outcome in outcomes if isinstance(outcome, Exception))
            others = next((found for found in failures if found is not None), None)
        else:
            outcomes = [others] * len(inserts)
        for (_, places), outcome in zip(inserts, outcomes, strict=True):
            status = failure(outcome) if isinstance(outcome, Exception) else success(outcome.leader)
            for place in places:
                statuses[place] = status
    return statuses


# ---------------------------------------------------------------------------------------------- tests of connections


def accept(session: ThriftSession, _: object) -> Status:
    """Call `testInsertTablet` and similar methods, which write nothing."""
    session.renew()
    return DONE
