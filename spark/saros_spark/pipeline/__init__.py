"""Pipelines: jobs on Spark that a YAML file describes.

`saros pipeline run FILE`, or from Python:

from saros_spark.pipeline import load, run
for result in run(load("skab.yaml")):
    print(result)

definition   the file, checked, as values        steps, report   what the steps do        runner   one after the other
"""

from __future__ import annotations

from saros_spark.pipeline.definition import Pipeline, load
from saros_spark.pipeline.runner import Result, run

__all__ = ["Pipeline", "Result", "load", "run"]
