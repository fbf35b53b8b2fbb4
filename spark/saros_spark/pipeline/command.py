"""`saros pipeline run FILE`, `saros pipeline check FILE`, and `saros spark-shell [TARGET]`.

Exit codes: 0 success, 1 a step failed, 2 wrong usage or an invalid file.
"""

from __future__ import annotations

import argparse
import code
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from saros_server.config.arguments import CommandParser
from saros_spark.base.errors import SourceError


def pipeline(arguments: Sequence[str]) -> int:
    """Run `saros pipeline`; return the exit code."""
    options = pipeline_parser().parse_args(arguments)
    from saros_spark.pipeline import load

    try:
        made = load(options.file)
    except ImportError as error:
        return _no_extra(error)
    except SourceError as error:
        sys.stderr.write(f"saros pipeline: {error}\n")
        return 2
    if options.verb == "check":
        sys.stdout.write(f"{options.file}: {len(made.steps)} steps on {made.database}\n")
        return 0
    return _run(made)


def pipeline_parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments of `saros pipeline`."""
    made = CommandParser(prog="saros pipeline", description="Run Spark jobs from a YAML file.")
    parts = made.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, what in (("run", "run the steps"), ("check", "check the file without running it")):
        part = parts.add_parser(name, help=what)
        part.add_argument("file", metavar="FILE", help="the pipeline, in YAML")
    return made


def _run(made: object) -> int:
    import saros
    from saros_spark.pipeline import Pipeline, run

    assert isinstance(made, Pipeline)
    try:
        from pyspark.errors import PySparkException
    except ImportError as error:
        return _no_extra(error)
    try:
        for result in run(made):
            sys.stdout.write(f"{result}\n")
            sys.stdout.flush()
    except (SourceError, saros.Error, PySparkException) as error:
        sys.stderr.write(f"saros pipeline: {said(error)}\n")
        return 1
    return 0


def said(error: Exception) -> str:
    """Return the message for the user: the last error of Saros in a text from Spark, or if none, the first line."""
    lines = str(error).splitlines()
    ours = re.findall(r"(?:saros_spark\.base\.errors|saros\.errors)\.\w+: (.*)", str(error))
    return ours[-1] if ours else (lines[0] if lines else type(error).__name__)


def _no_extra(error: ImportError) -> int:
    sys.stderr.write(f"saros: this needs the extra `spark`: pip install 'saros[spark]' ({error})\n")
    return 2


def spark_shell(arguments: Sequence[str]) -> int:
    """Run `saros spark-shell`, that is, Python with a Spark session and a folder's server; return the exit code."""
    options = shell_parser().parse_args(arguments)
    import saros_spark
    from saros_spark.pipeline.definition import SparkSettings
    from saros_spark.pipeline.runner import session

    try:
        spark = session(SparkSettings(options.master))
    except ImportError as error:
        return _no_extra(error)
    try:
        with nullcontext(options.target) if "://" in options.target else saros_spark.serving(options.target) as url:
            saros_spark.register(spark)
            names = {"spark": spark, "saros_spark": saros_spark, "url": url}
            greeting = f'spark, url = {url!r}; saros_spark.scan(spark, url, "root.**").show()'
            code.interact(greeting, local=names, exitmsg="")
    except SourceError as error:
        sys.stderr.write(f"saros spark-shell: {error}\n")
        return 1
    finally:
        spark.stop()
    return 0


def shell_parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments of `saros spark-shell`."""
    made = CommandParser(prog="saros spark-shell", description="Python with Spark and a database.")
    made.add_argument("target", nargs="?", default="./data", help="folder or saros://host; default ./data")
    made.add_argument("--master", default="local[*]", help="Spark's master; default local[*]")
    return made
