"""The shape that PEP 249 asks for, apart from any database."""

from __future__ import annotations

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
