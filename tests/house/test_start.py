"""Importing the driver, and running commands that query a server, is cheap: heavy modules load only when needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "numpy",
    "pyarrow",
    "numba",
    "antlr4",
    "pandas",
    "prompt_toolkit",
    "sqlalchemy",
    "saros_engine",
    "saros_storage",
)
#: Modules that only a process with an open database needs.
DATABASE = ("saros_engine", "saros_grammar.generated", "saros_storage.store", "saros_server.node.node", "numba")
ARRAYS = ("numpy", "pyarrow")
COMMANDS = {
    "status": (*DATABASE, *ARRAYS),
    "stop": (*DATABASE, *ARRAYS, "grpc"),
    "start --foreground --port none": (*DATABASE, *ARRAYS, "grpc"),
    "user hash --password-file none": (*DATABASE, *ARRAYS, "grpc"),
    "config": (*DATABASE, *ARRAYS, "grpc"),
    "audit verify": (*DATABASE, *ARRAYS, "grpc"),
    "cluster status": DATABASE,
    "backup list none": DATABASE,
    "sync status": DATABASE,
}


def test_import_loads_nothing_heavy() -> None:
    code = f"import saros, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("command", "heavy"), COMMANDS.items(), ids=COMMANDS)
def test_commands_that_look_at_a_server_load_no_database(command: str, heavy: tuple[str, ...], tmp_path: Path) -> None:
    code = f"""
import sys
from saros_shell.main import main
try:
    main({command.split()!r})
except SystemExit:  # wrong use
    pass
print("loaded", [m for m in {heavy!r} if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "loaded []"


#: Modules that an embedded database does not import: modules for servers and clusters, and modules loaded at first use.
NOT_EMBEDDED = (
    *("grpc", "cryptography", "ssl", "starlette", "uvicorn", "httptools", "thrift", "google.protobuf"),
    *("antlr4", "saros_grammar.generated", "numba", "email", "prometheus_client", "prompt_toolkit"),
    *(
        "argparse",
        "saros_cluster.data.ownership",
        "saros_cluster.raft",
        "saros_cluster.topology",
        "saros_cluster.transport",
        "saros_cluster.node.host",
        "saros_server.cluster",
        "saros_server.pki",
        "saros_server.http",
    ),
    *("saros_server.port", "saros_sync.sender.process", "saros_sync.clustered"),
)


def test_opening_a_folder_loads_nothing_of_a_server(tmp_path: Path) -> None:
    code = f"""
import saros, sys
saros.connect({str(tmp_path)!r}).close()
print([m for m in {NOT_EMBEDDED!r} if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_an_embedded_database_speaks_to_no_network(tmp_path: Path) -> None:
    code = f"""
import saros, sys
with saros.connect({str(tmp_path)!r}) as db:
    db.execute("show databases").fetchall()
print([m for m in ("grpc", "saros_server.port.listener", "saros_server.http.metrics", "numba") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_reading_and_writing_loads_no_pandas(tmp_path: Path) -> None:
    """Importing pandas takes half a second, and users need not have it installed."""
    code = f"""
import saros, sys, numpy
with saros.connect({str(tmp_path)!r}) as db:
    db.insert("root.a.d", numpy.arange(3), {{"s": numpy.arange(3.0), "i": numpy.arange(3)}})
    for text in ("select last * from root.a.d", "select cast(s as TEXT), s from root.a.d where s in (1, 1e9)"):
        db.execute(text).fetch_arrow()
        db.execute(text).fetchall()
    db.execute("insert into root.a.d(time, s) values (7, 7.0)")
    print([c.dtype for c in db.execute("select s, i, s > 0 from root.a.d").fetch_numpy().values()])
print("pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[1:] == ["False", ""]


@pytest.mark.slow
def test_the_shell_loads_neither_pandas_nor_what_its_commands_need(tmp_path: Path) -> None:
    statements = """
insert into root.a.d(time, x, note) values (1, 2.5, 'a'), (2, 3.5, null);
select * from root.a.d; select avg(x) from root.a.d where time > 9; show timeseries
"""
    code = f"""
import sys
from saros_shell.main import main
for format_ in ("table", "csv", "json", "vertical"):
    main(["shell", {str(tmp_path)!r}, "--format", format_, "-e", {statements!r}])
heavy = ("pandas", "pyarrow.parquet", "prompt_toolkit", "saros_shell.repl.backslash_commands")
print("loaded", [m for m in heavy if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded []"
