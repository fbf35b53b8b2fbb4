"""The names and attributes that PEP 249 requires, without a database."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import saros
from saros.errors import database_error
from saros_wire.status import STATUS, ErrorClass


def test_module_attributes() -> None:
    assert (saros.apilevel, saros.threadsafety, saros.paramstyle) == ("2.0", 2, "qmark")


def test_exception_tree() -> None:
    assert issubclass(saros.Error, Exception)
    assert issubclass(saros.InterfaceError, saros.Error)
    for name in ("DataError", "OperationalError", "IntegrityError", "InternalError", "ProgrammingError"):
        assert issubclass(getattr(saros, name), saros.DatabaseError)
    assert issubclass(saros.NotSupportedError, saros.DatabaseError)
    assert issubclass(saros.PartialWriteError, saros.OperationalError)


@pytest.mark.parametrize("code", sorted(STATUS))
def test_every_code_has_its_class(code: int) -> None:
    error = database_error("message", code)
    expected = {
        ErrorClass.PROGRAMMING: saros.ProgrammingError,
        ErrorClass.DATA: saros.DataError,
        ErrorClass.INTEGRITY: saros.IntegrityError,
        ErrorClass.OPERATIONAL: saros.OperationalError,
        ErrorClass.NOT_SUPPORTED: saros.NotSupportedError,
        ErrorClass.INTERNAL: saros.InternalError,
    }[STATUS[code].error_class]
    assert (saros.PartialWriteError if code == 2020 else expected) is type(error)
    assert (code, STATUS[code].name, STATUS[code].advice) == (error.code, error.status, error.advice)


def test_type_objects_compare_with_type_names_in_both_directions() -> None:
    assert saros.NUMBER == "DOUBLE"
    assert saros.NUMBER == "INT32"
    assert saros.STRING != "DOUBLE"
    assert saros.NUMBER != saros.STRING


def test_the_module_lists_public_names_only() -> None:
    assert {*saros.__all__, "__version__", "aio"} == set(dir(saros))
    assert all(hasattr(saros, name) for name in dir(saros))


def test_advice_does_not_repeat_a_message_that_says_what_to_do(tmp_path: Path) -> None:
    with saros.connect(tmp_path, options={"durability": "os"}) as connection:
        with pytest.raises(saros.InterfaceError, match="execute a statement first") as caught:
            connection.cursor().fetchone()
        assert (2003, "") == (caught.value.code, caught.value.advice)
        with pytest.raises(saros.ProgrammingError) as wrong:
            connection.execute("select x from root.a.d where x > ?")
        assert "the statement has 1 parameter (?), and 0 values were given" == str(wrong.value)
        assert "Correct the call as the message says." == wrong.value.advice
    with pytest.raises(saros.InterfaceError) as closed:
        connection.cursor()
    assert "Open a new connection." == closed.value.advice


@pytest.mark.slow
def test_rows_are_typed_in_loops_of_threads_and_tasks(tmp_path: Path) -> None:
    program = """
import saros

async def read() -> None:
    async with await saros.aio.connect("data") as connection:
        async for row in await connection.execute("show version"):
            reveal_type(row)
    for other in saros.connect("data").execute("show version"):
        reveal_type(other)
"""
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path)
    assert 2 == done.stdout.count('Revealed type is "tuple[Any, ...]"'), done.stdout
