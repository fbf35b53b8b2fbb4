"""Programs that use IoTDB's clients. On IoTDB and on Saros, each line of their output must be the same.

    python        stock.py of ../shared/iotdb: Session, SessionPool, DB-API, SQLAlchemy
    jdbc, pool    Stock.java of ../shared/iotdb: JDBC, SessionPool
    cli           IoTDB's CLI, with statements from a pipe
    tools         the CLI's tools: exports and imports
    session_values, jdbc_values    the values, types, and codes that clients read for the statements of values.sql

The programs log in as root with the password root. `PYTHONPATH=tests python -m server.stock_clients.drivers PORT` runs
them on a server, such as a new IoTDB of `artefacts.CLI_VERSION`, and writes what they print to
`tests/system/testdata/iotdb`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from server.stock_clients.artefacts import CLI_VERSION, Unavailable, java_classes, python_packages

_HERE = Path(__file__).parent
SHARED = Path(__file__).resolve().parents[4] / "shared" / "iotdb"
PRINTED = Path(__file__).resolve().parents[2] / "system" / "testdata" / "iotdb"
_LOGIN = ("-h", "127.0.0.1", "-u", "root", "-pw", "root")
_JAVA = (
    "java",
    *("--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED"),
    *("-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Duser.timezone=UTC"),
)
_SECONDS = 120.0
#: Patterns for the parts of the output that differ from run to run: first for lines of logs, then for addresses of
#: objects, durations, and the server's port.
_LOG_LINE = re.compile(r"SLF4J|.* \[main\] ")
_VARYING = (
    (re.compile(r"(IoTDBConnection)@\w+"), r"\1"),
    (re.compile(r"\d+ ms|\d+\.\d+s"), "some time"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1"),
)

#: Statements whose rows depend on the server: only their columns are compared.
_ABOUT_THE_SERVER = re.compile(r"show (version|queries|cluster|regions|datanodes|functions|variables|all ttl)|explain")

_CLI = """
create timeseries root.cli.d.a INT32
insert into root.cli.d(time, a, b) values (1, 2, 'x'), (2, null, 'y')
show devices
selec
set fetch_size=1
select a, b from root.cli.d
set time_display_type=long
select count(a) from root.cli.d group by ([0, 4), 2ms)
set time_zone=+05:00
show time_zone
set time_display_type=default
select last a from root.cli.d
insert into root.cli.d(time, a) values (1, 'z')
select nothing from root.cli.d
delete database root.cli
delete database root.cli
exit
"""
_FILL = (
    "create timeseries root.tools.d.a INT32; "
    "insert into root.tools.d(time, a, b) values (1, 2, 'x'), (2, null, 'y y'), (3, 4, null)"
)
_SELECT = "select a, b from root.tools.d"
_SERIES = "show timeseries root.tools.**"
_DROP = "delete database root.tools"


def python(port: int, _: Path) -> list[str]:
    """Run stock.py."""
    command = (sys.executable, "-W", "ignore", str(_shared("stock.py")), str(port))
    return _printed(command, PYTHONPATH=str(python_packages("2.0.11")))


def jdbc(port: int, _: Path) -> list[str]:
    """Run Stock.java with JDBC."""
    return _java("Stock", str(port), "jdbc", programs=[_shared("Stock.java")])


def pool(port: int, _: Path) -> list[str]:
    """Run Stock.java with a SessionPool."""
    return _java("Stock", str(port), "pool", programs=[_shared("Stock.java")])


def cli(port: int, _: Path) -> list[str]:
    """Run the CLI."""
    text = ";\n".join(_CLI.strip().splitlines()) + ";\n"
    return _java("org.apache.iotdb.cli.Cli", "-p", str(port), *_LOGIN, said=text)


def tools(port: int, folder: Path) -> list[str]:
    """Export a database to the folder and import it again. The server must be allowed to load files from the folder."""
    lines = list[str]()

    def run(program: str, *words: str) -> None:
        printed = _java(program, "-p", str(port), *_LOGIN, *words)
        lines.extend(line.replace(str(folder), "FOLDER") for line in printed)

    def sql(statements: str) -> None:
        run("org.apache.iotdb.cli.Cli", "-e", statements)

    def show(path: Path) -> None:
        lines.extend([path.name, *path.read_text().splitlines()])

    sql(_FILL)
    for kind in ("csv", "sql"):
        run("org.apache.iotdb.tool.data.ExportData", "-ft", kind, "-t", str(folder / kind), "-q", _SELECT)
        show(folder / kind / f"dump0_0.{kind}")
    run("org.apache.iotdb.tool.tsfile.ExportTsFile", "-t", str(folder / "tsfile"), "-q", _SELECT)
    run("org.apache.iotdb.tool.schema.ExportSchema", "-t", str(folder / "schema"), "-path", "root.tools.**")
    show(folder / "schema" / "dump0_0.csv")
    for kind in ("csv", "sql"):
        sql(_DROP)
        run("org.apache.iotdb.tool.data.ImportData", "-ft", kind, "-s", str(folder / kind), "-tz", "UTC")
        sql(_SELECT)
    sql(_DROP)
    files = ("-s", str(folder / "tsfile"), "-os", "none", "-of", "none")
    run("org.apache.iotdb.tool.tsfile.ImportTsFile", *files)
    sql(f"{_SELECT}; {_DROP}")
    run("org.apache.iotdb.tool.schema.ImportSchema", "-s", str(folder / "schema" / "dump0_0.csv"))
    sql(f"{_SERIES}; {_DROP}")
    return lines


def session_values(port: int, _: Path) -> list[str]:
    """Read values with a Session."""
    command = (sys.executable, str(_HERE / "session_values.py"), str(port))
    return _values(_printed(command, _statements(), PYTHONPATH=str(python_packages("2.0.11"))))


def jdbc_values(port: int, _: Path) -> list[str]:
    """Read values through JDBC."""
    command = (*_JAVA, "-Dfile.encoding=UTF-8", "-cp", java_classes("2.0.5"), "JdbcValues", str(port))
    return _values(_printed(command, _statements()))


def _statements() -> str:
    return (_HERE / "values.sql").read_text(encoding="utf-8")


def _values(lines: Sequence[str]) -> list[str]:
    """Return the lines without the rows that depend on the server."""
    kept = list[str]()
    last_kept = -1  # the index of the last line of this statement that is kept
    for at, line in enumerate(lines):
        if line.startswith("> "):
            last_kept = at + 1 if _ABOUT_THE_SERVER.match(line, 2) else len(lines)
        if at <= last_kept:
            kept.append(line)
    return kept


DRIVERS: dict[str, Callable[[int, Path], list[str]]] = {
    driver.__name__: driver for driver in (python, jdbc, pool, cli, tools, session_values, jdbc_values)
}


def _java(*words: str, said: str = "", programs: Sequence[Path] = ()) -> list[str]:
    """Run a program with the jars of the CLI. Raises Unavailable."""
    return _printed((*_JAVA, "-cp", java_classes(CLI_VERSION, programs), *words), said)


def _shared(name: str) -> Path:
    """Return the path of a program of ../shared. Raises Unavailable."""
    path = SHARED / name
    if not path.exists():
        raise Unavailable(f"there is no {path}")
    return path


def _printed(command: Sequence[str], said: str = "", **variables: str) -> list[str]:
    """Run a program. Return its output without the parts that differ from run to run."""
    options = {"capture_output": True, "text": True, "timeout": _SECONDS, "env": {**os.environ, **variables}}
    ran = subprocess.run(command, input=said, check=False, **options)  # type: ignore[call-overload]
    text = ran.stdout
    for pattern, mask in _VARYING:
        text = pattern.sub(mask, text)
    return [line.rstrip() for line in text.splitlines() if not _LOG_LINE.match(line)]


def main(port: int) -> None:
    """Run the programs on a server, and write their output to files."""
    for name, driver in DRIVERS.items():
        with tempfile.TemporaryDirectory() as folder:
            lines = driver(port, Path(folder))
        (PRINTED / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main(int(sys.argv[1]))
