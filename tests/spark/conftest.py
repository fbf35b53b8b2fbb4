"""A Spark session for all tests that need one, and databases served on ports."""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from saros_server.server import Server

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.log.level": "OFF",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start Spark or a server for Spark as slow."""
    for item in items:
        if item.path.parent == Path(__file__).parent and {"spark", "url"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Yield a local session that runs a failing task up to three times."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not here")
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    patch = pytest.MonkeyPatch()
    patch.setenv("PYSPARK_PYTHON", sys.executable)
    patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark warns about versions of pandas, which Saros does not use
        from pyspark import java_gateway
        from pyspark.sql import SparkSession

        import saros_spark

        # PySpark starts its JVM by fork, which is unsafe while threads of earlier tests are running.
        patch.setattr(java_gateway, "Popen", started_without_fork)
        builder = SparkSession.builder.master("local[2,3]").appName("saros tests")
        warehouse = str(tmp_path_factory.mktemp("warehouse"))
        for name, value in {**SETTINGS, "spark.sql.warehouse.dir": warehouse}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        saros_spark.register(session)
    yield session
    session.stop()
    patch.undo()


def started_without_fork(*words: Any, preexec_fn: Any = None, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(*words, start_new_session=True, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("database")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """Yield the URL of a server in this process on an empty folder."""
    data = folder / "data"
    data.mkdir()
    files = folder / "files"
    files.mkdir()
    (data / "saros.toml").write_text(f'durability = "os"\nload_folders = "{files}"\n')
    server = Server(str(data), "127.0.0.1", 0)
    server.start()
    yield f"saros://{server.address}"
    server.stop()
