"""Errors of Spark's workers: some are reported without a traceback; a worker whose reader is gone prints nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from saros_spark.base.errors import SourceError
from saros_spark.messages import Failed, refuse_failed

PROGRAM = """
import os, sys
from importlib.machinery import ModuleSpec
if sys.argv[1] == "worker":
    sys.modules["__main__"].__spec__ = ModuleSpec("pyspark.daemon", None)
from saros_spark.base.errors import SourceError
from saros_spark.base.worker_errors import plain_errors

@plain_errors()
def fail(error):
    raise error

for error in (ValueError("a bug"), SourceError("a reason")):
    try:
        fail(error)
    except Exception:
        print(type(error).__name__, "SPARK_HIDE_TRACEBACK" in os.environ)

def rows():
    with plain_errors():
        yield from range(10)

reading = rows()
next(reading)
reading.close()
print("broken pipe", file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("process", "hidden", "stderr"), [("worker", "True", ""), ("user's own", "False", "broken pipe\n")]
)
def test_a_worker_reports_reasons_alone_and_is_silent_once_nobody_reads(process: str, hidden: str, stderr: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, process], capture_output=True, text=True, check=True)
    assert f"ValueError False\nSourceError {hidden}\n" == done.stdout
    assert stderr == done.stderr


@pytest.mark.parametrize(
    ("count", "said"), [(1, "^bad 0$"), (2, "^bad 0; 1 other task failed, too$"), (3, "; 2 other tasks failed, too$")]
)
def test_the_first_reason_and_the_number_of_other_tasks_that_failed_are_named(count: int, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        refuse_failed([None, *(Failed(f"bad {number}") for number in range(count))])
