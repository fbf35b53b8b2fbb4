"""The `saros` command: finds the sub-command, loads its module, runs it.

Each sub-command is a module with `main(arguments) -> exit code`, loaded only when it is needed, so that `saros shell`
starts fast. Exit codes: 0 success, 1 the database reported an error, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper

from saros_server.config.did_you_mean import did_you_mean
from saros_server.process.terminal_log import write_lines
from saros_wire.grpc_log import silence_grpc_log

#: Help texts by name.
COMMANDS: dict[str, str] = {
    "start": "serve a folder to other processes of this machine",
    "stop": "stop the server of a folder",
    "status": "show the server of a folder and its condition",
    "cluster": "create, start, stop and inspect a cluster",
    "console": "open the browser console of a folder or a running node",
    "shell": "open an SQL shell on a folder or a server, or run SQL scripts",
    "import": "load CSV, JSON lines, Parquet or TsFiles",
    "mqtt": "write the messages of an MQTT broker to a database",
    "export": "write series or a query to CSV, Parquet or TsFile",
    "pipeline": "run Spark jobs from a YAML file",
    "spark-shell": "start Python with a Spark session on a folder or a server",
    "bench": "measure writing and querying on this machine",
    "tsfile": "inspect, verify or dump TsFiles",
    "backup": "back up a folder or a server; list or verify backups",
    "restore": "create a data folder from a backup",
    "sync": "send a folder's sealed data to other servers",
    "verify": "check every checksum and page of a data folder",
    "support": "collect a bundle for a support request, without secrets and data",
    "user": "create an administrator, or set its password",
    "audit": "check that the audit trail is unchanged",
    "warm-up": "compile all kernels, for container images and before measurements",
    "config": "print the options in force and their sources",
    "completion": "print the completion script of bash, zsh or fish",
}


#: Error codes of failed writes to a file without a name, such as standard output: the disk is full, or the reader has
#: closed the pipe.
_OUTPUT_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the `saros` command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(usage())
        return 0 if words else 2
    if words[0] in ("-V", "--version", "version"):
        from saros_server.process.version import RELEASE

        sys.stdout.write(f"saros {RELEASE}\n")
        return 0
    if words[0] not in COMMANDS:
        meant = did_you_mean(words[0], COMMANDS)
        sys.stderr.write(f"saros: unknown command {words[0]!r}{meant}\n\n{usage()}")
        return 2
    silence_grpc_log()
    write_lines()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for characters that the terminal cannot encode
    try:
        code = _main_of(words[0])(words[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        if error.errno not in _OUTPUT_ERRNOS or error.filename is not None:
            raise
        return _output_failed(words[0], error)
    return code


def _output_failed(command: str, error: OSError) -> int:
    """Return the exit code after a failed write to standard output, and discard all further output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:  # the reader closed the pipe, because it needs no further output
        return 0
    sys.stderr.write(f"saros {command}: cannot write standard output: {error.strerror}\n")
    return 1


def _main_of(name: str) -> Callable[[Sequence[str]], int]:  # noqa: C901 - a table of imports
    """Load the module of a sub-command and return the function that runs it."""
    match name:
        case "start":
            from saros_shell.commands.start import main
        case "stop":
            from saros_shell.commands.server import stop as main
        case "status":
            from saros_shell.commands.server import status as main
        case "cluster":
            from saros_shell.cluster.command import main
        case "console":
            from saros_shell.commands.console import main
        case "shell":
            from saros_shell.commands.shell import main
        case "import":
            from saros_shell.transfer.importer import main
        case "mqtt":
            from saros_shell.mqtt.command import main
        case "export":
            from saros_shell.transfer.exporter import main
        case "pipeline":
            from saros_spark.pipeline.command import pipeline as main
        case "spark-shell":
            from saros_spark.pipeline.command import spark_shell as main
        case "bench":
            from saros_shell.commands.bench import main
        case "tsfile":
            from saros_shell.commands.tsfile import main
        case "backup":
            from saros_shell.commands.backup import main
        case "restore":
            from saros_shell.commands.backup import restore as main
        case "sync":
            from saros_shell.commands.sync import main
        case "verify":
            from saros_shell.commands.verify import main
        case "support":
            from saros_shell.support.command import main
        case "user":
            from saros_shell.commands.user import main
        case "audit":
            from saros_shell.commands.audit import main
        case "warm-up":
            from saros_shell.commands.warm_up import main
        case "config":
            from saros_shell.commands.config import main
        case "completion":
            from saros_shell.help.completion import main
        case _:
            raise AssertionError(name)
    return main


def usage() -> str:
    """Return the list of sub-commands."""
    rows = "\n".join(f"  {name:<11} {what}" for name, what in COMMANDS.items())
    return f"usage: saros COMMAND [ARGUMENTS]\n\n{rows}\n\nSee also: saros COMMAND --help, saros --version.\n"
