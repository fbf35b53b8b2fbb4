"""Use a server through PyPI's apache-iotdb: Session, SessionPool, DB-API, SQLAlchemy. A JSON line for each step.

usage: python_client.py PORT USER PASSWORD
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from iotdb.dbapi import connect
from iotdb.Session import Session
from iotdb.SessionPool import PoolConfig, SessionPool
from iotdb.utils.IoTDBConstants import Compressor, TSDataType, TSEncoding
from iotdb.utils.NumpyTablet import NumpyTablet
from iotdb.utils.Tablet import Tablet

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

HOST, PORT, USER, PASSWORD = "127.0.0.1", sys.argv[1], sys.argv[2], sys.argv[3]
TYPES = [
    *(TSDataType.BOOLEAN, TSDataType.INT32, TSDataType.INT64, TSDataType.FLOAT, TSDataType.DOUBLE),
    *(TSDataType.TEXT, TSDataType.TIMESTAMP, TSDataType.DATE, TSDataType.BLOB, TSDataType.STRING),
]
NAMES = ["b", "i", "l", "f", "d", "t", "ts", "da", "bl", "s"]
LARGE = 400_000


def values(number: int) -> list[Any]:
    """Return the values of row `number`, one for each type."""
    day = dt.date(2024, 1, 1 + number)
    return [number % 2 == 1, number, 2**40 + number, 0.5, number / 4, f"t{number}", number, day, b"\x00\xff", "s"]


def step(name: str, run: Callable[[], Any]) -> None:
    """Print the result of a step, or its error."""
    try:
        result = run()
    except Exception as error:  # noqa: BLE001 (the result of the step)
        result = f"{type(error).__name__}: {str(error)[:150]}"
    print(json.dumps({"step": name, "result": result}, default=str), flush=True)


def opened(zone: str = "UTC", fetch_size: int = 3) -> Session:
    session = Session(HOST, PORT, USER, PASSWORD, fetch_size=fetch_size, zone_id=zone)
    session.open()
    return session


def rows(result: Any) -> list[str]:
    """Return the rows of a result, and close it."""
    found = []
    while result.has_next():
        found.append(" ".join(str(result.next()).split("\t\t")))
    result.close_operation_handle()
    return found


def create(session: Session) -> None:
    step("set_storage_group", lambda: session.set_storage_group("root.py"))
    step(
        "create_time_series",
        lambda: session.create_time_series(
            "root.py.e.x", TSDataType.INT32, TSEncoding.PLAIN, Compressor.SNAPPY, None, {"k": "v"}, None, "alias"
        ),
    )
    paths = [f"root.py.d.{name}" for name in NAMES]
    encodings, compressors = [TSEncoding.PLAIN] * len(TYPES), [Compressor.LZ4] * len(TYPES)
    step("create_multi_time_series", lambda: session.create_multi_time_series(paths, TYPES, encodings, compressors))
    step(
        "create_aligned_time_series",
        lambda: session.create_aligned_time_series("root.py.al", NAMES, TYPES, encodings, compressors),
    )
    step("check_time_series_exists", lambda: session.check_time_series_exists("root.py.e.alias"))
    step("check a series that is not there", lambda: session.check_time_series_exists("root.py.e.y"))


def write(session: Session) -> None:
    """Write row n of root.py.d with the n-th call, and the rows of root.py.al with the calls for aligned devices."""
    some = [None if place % 2 else value for place, value in enumerate(values(2))]
    step("insert_record", lambda: session.insert_record("root.py.d", 1, NAMES, TYPES, values(1)))
    step("insert_record with nulls", lambda: session.insert_record("root.py.d", 2, NAMES, TYPES, some))
    step("insert_str_record", lambda: session.insert_str_record("root.py.d", 3, ["i", "t"], ["3", "t3"]))
    step(
        "insert_records",
        lambda: session.insert_records(
            ["root.py.d", "root.py.new"], [4, 4], [NAMES, ["q"]], [TYPES, [TSDataType.INT32]], [values(4), [1]]
        ),
    )
    lists = [NAMES, NAMES], [TYPES, TYPES]
    step(
        "insert_records_of_one_device",
        lambda: session.insert_records_of_one_device("root.py.d", [6, 5], *lists, [values(6), values(5)]),
    )
    step(
        "insert_string_records_of_one_device",
        lambda: session.insert_string_records_of_one_device("root.py.d", [7, 8], [["i"], ["t"]], [["7"], ["t8"]]),
    )
    tablet = Tablet("root.py.d", NAMES, TYPES, [values(9), [None] * 10, values(11)], [9, 10, 11])
    step("insert_tablet", lambda: session.insert_tablet(tablet))
    ints = Tablet("root.py.d", ["i"], [TSDataType.INT32], [[12], [13]], [12, 13])
    step("insert_tablets", lambda: session.insert_tablets([ints, Tablet("root.py.new", ["q"], [1], [[2]], [5])]))
    step("insert_aligned_record", lambda: session.insert_aligned_record("root.py.al", 1, NAMES, TYPES, values(1)))
    step("insert_aligned_str_record", lambda: session.insert_aligned_str_record("root.py.al", 2, ["i"], ["2"]))
    step(
        "insert_aligned_records",
        lambda: session.insert_aligned_records(["root.py.al"], [3], [NAMES], [TYPES], [values(3)]),
    )
    step(
        "insert_aligned_records_of_one_device",
        lambda: session.insert_aligned_records_of_one_device("root.py.al", [5, 4], *lists, [values(5), values(4)]),
    )
    aligned = Tablet("root.py.al", NAMES, TYPES, [values(6), [None] * 10], [6, 7])
    step("insert_aligned_tablet", lambda: session.insert_aligned_tablet(aligned))
    step(
        "insert_aligned_tablets", lambda: session.insert_aligned_tablets([Tablet("root.py.al", ["i"], [1], [[8]], [8])])
    )
    numbers = [np.arange(LARGE, dtype=">i8"), np.arange(LARGE, dtype=">f8") / 2]
    large = NumpyTablet(
        "root.py.np", ["a", "b"], [TSDataType.INT64, TSDataType.DOUBLE], numbers, np.arange(LARGE, dtype=">i8")
    )
    step("insert_tablet of arrays", lambda: session.insert_tablet(large))
    step("test_insert_record", lambda: session.test_insert_record("root.py.no", 1, NAMES, TYPES, values(1)))
    step("test_insert_tablet", lambda: session.test_insert_tablet(ints))


def query(session: Session) -> None:
    texts = "select b, i, l, f, d, t, s from root.py.d"
    step("execute_query_statement", lambda: rows(session.execute_query_statement(texts)))
    others = "select ts, da, bl from root.py.d where time < 5"
    step("types that are not numbers", lambda: rows(session.execute_query_statement(others)))
    step("execute_statement", lambda: rows(session.execute_statement("show devices root.py.**")))
    step("todf", lambda: list(session.execute_query_statement("select * from root.py.al").todf().shape))
    step("aggregate", lambda: rows(session.execute_query_statement("select count(i), avg(d) from root.py.al")))
    step("raw", lambda: rows(session.execute_raw_data_query(["root.py.d.i"], 2, 5)))
    step("last", lambda: rows(session.execute_last_data_query(["root.py.d.i", "root.py.e.x"], 1)))
    step(
        "by device",
        lambda: rows(
            session.execute_query_statement("select i from root.py.d, root.py.al where time < 2 align by device")
        ),
    )
    step("no rows", lambda: rows(session.execute_query_statement("select i from root.py.d where time < 0")))


def fail(session: Session) -> None:
    step("syntax", lambda: session.execute_query_statement("selec"))
    step("a value of another type", lambda: session.insert_record("root.py.d", 20, ["i"], [TSDataType.TEXT], ["x"]))
    records = ["root.py.d", "root.py.d"], [20, 21], [["i"], ["i"]], [[TSDataType.TEXT], [TSDataType.INT32]]
    step("one of two records", lambda: session.insert_records(*records, [["x"], [21]]))
    step("the other one", lambda: rows(session.execute_query_statement("select i from root.py.d where time > 19")))
    step("an illegal path", lambda: session.insert_record("py.d", 20, ["i"], [TSDataType.INT32], [1]))

    def slow() -> list[str]:
        return rows(session.execute_query_statement("select a + 1 from root.py.np order by a desc", timeout=1))

    step("time-out", slow)
    step("after the time-out", lambda: rows(session.execute_query_statement("select count(a) from root.py.np")))


def zones() -> None:
    """Use two sessions at the same time, each in a different time zone."""
    first, second = opened("+08:00"), opened("UTC")
    step("get_time_zone", lambda: [first.get_time_zone(), second.get_time_zone()])
    step(
        "insert in the first zone",
        lambda: first.execute_non_query_statement("insert into root.py.z(time, i) values(2024-01-01T08:00:00, 1)"),
    )
    text = "select i from root.py.z where time = 2024-01-01T00:00:00"
    step("read in the second zone", lambda: rows(second.execute_query_statement(text)))
    open_result = first.execute_query_statement("select i from root.py.d")
    first_row = str(open_result.next())
    step("write while a result is open", lambda: second.insert_str_record("root.py.z", 1, ["i"], ["2"]))
    step("set_time_zone", lambda: [second.set_time_zone("Asia/Tokyo"), second.get_time_zone()][1])
    step("read in the third zone", lambda: rows(second.execute_query_statement(text)))
    step("the open result", lambda: [first_row.split()[0], *(row.split()[0] for row in rows(open_result))])
    first.close()
    second.close()


def others() -> None:
    def pool() -> list[str]:
        config = PoolConfig(
            node_urls=[f"{HOST}:{PORT}"], user_name=USER, password=PASSWORD, fetch_size=100, time_zone="UTC"
        )
        made = SessionPool(config, 2, 3_000)
        first, second = made.get_session(), made.get_session()
        found = [rows(each.execute_query_statement("select count(i) from root.py.d"))[0] for each in (first, second)]
        made.put_back(first)
        made.put_back(second)
        made.close()
        return found

    step("SessionPool", pool)

    def dbapi() -> list[Any]:
        connection = connect(HOST, PORT, USER, PASSWORD, zone_id="UTC")
        cursor = connection.cursor()
        cursor.execute("insert into root.py.z(time, i) values(5, 5)")
        cursor.execute("select i from root.py.z where time < 10")
        found = [[column[0] for column in cursor.description], cursor.fetchall()]
        cursor.close()
        connection.close()
        return found

    step("DB-API", dbapi)
    from sqlalchemy import create_engine, inspect, text
    from sqlalchemy.dialects import registry

    registry.register("iotdb", "iotdb.sqlalchemy.IoTDBDialect", "IoTDBDialect")
    engine = create_engine(f"iotdb://{USER}:{PASSWORD}@{HOST}:{PORT}")

    def select() -> list[Any]:
        with engine.connect() as connection:
            return [list(row) for row in connection.execute(text("select i from root.py.z where time < 10"))]

    step("SQLAlchemy", select)
    step(
        "SQLAlchemy's inspector",
        lambda: [inspect(engine).get_schema_names(), inspect(engine).get_table_names("root.py")],
    )


def remove(session: Session) -> None:
    step("delete_data", lambda: session.delete_data(["root.py.d.i"], 6))
    step("delete_data_in_range", lambda: session.delete_data_in_range(["root.py.d.i"], 12, 12))
    step("what is left", lambda: rows(session.execute_query_statement("select i from root.py.d")))
    step("delete_time_series", lambda: session.delete_time_series(["root.py.e.x"]))
    step("delete_storage_group", lambda: session.delete_storage_group("root.py"))
    step("no database", lambda: rows(session.execute_statement("show databases root.py")))


def main() -> None:
    def refused() -> None:
        Session(HOST, PORT, "nobody", "wrong password").open()

    session = opened()
    create(session)
    write(session)
    query(session)
    fail(session)
    zones()
    others()
    remove(session)
    session.close()
    step("no such user", refused)


main()
