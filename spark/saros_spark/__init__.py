"""Saros and Apache Spark: the data sources `saros` and `tsfile`, and jobs that move data.

    import saros_spark
    saros_spark.register(spark)
    frame = saros_spark.scan(spark, "saros://host:6667", "root.plant.**", columns=["temperature"], start="2024-01-01")

Importing this package loads neither Spark nor Arrow: Spark's workers import it in every new process.
"""

from __future__ import annotations

import logging

from saros_spark.base.local_server import serving
from saros_spark.session import register, scan, scan_options

__all__ = ["register", "scan", "scan_options", "serving"]

logging.getLogger(__name__).addHandler(logging.NullHandler())
