"""Pipelines: Spark jobs defined by a YAML file.

`saros pipeline run FILE`, or from Python:

from saros_spark.pipeline import load, run
for result in run(load("skab.yaml")):
    print(result)

definition   checks the file's values        steps, report   the steps        runner   runs the steps in order
"""

from __future__ import annotations

from saros_spark.pipeline.definition import Pipeline, load
from saros_spark.pipeline.runner import Result, run

__all__ = ["Pipeline", "Result", "load", "run"]
