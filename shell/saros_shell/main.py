"""The `saros` command: finds the sub-command, loads its module, runs it.

Each sub-command is a module with `main(arguments) -> exit code`, loaded only when it is asked for, so that
`saros shell` starts fast. Exit codes: 0 done, 1 the database said no, 2 wrong use, 130 interrupted.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from saros_server.config.arguments import did_you_mean
from saros_server.process.terminal_log import write_lines
from saros_wire.grpc_log import quieten

#: name -> (module or module:function, what it does); the function is `main` if none is named
COMMANDS: dict[str, tuple[str, str]] = {
    "start": ("saros_shell.commands.start", "serve a folder to other processes of this machine"),
    "stop": ("saros_shell.commands.server:stop", "stop the server of a folder"),
    "status": ("saros_shell.commands.server:status", "show the server of a folder and its condition"),
    "cluster": ("saros_shell.cluster.command", "create, start, stop and inspect a cluster"),
    "shell": (
        "saros_shell.commands.shell",
        "SQL shell on a folder or a server, or run SQL scripts",
    ),
    "import": ("saros_shell.transfer.importer", "load CSV or Parquet files"),
    "export": ("saros_shell.transfer.exporter", "write series or a query to CSV, Parquet or TsFile"),
    "pipeline": ("saros_spark.pipeline.command:pipeline", "run Spark jobs from a YAML file"),
    "spark-shell": ("saros_spark.pipeline.command:spark_shell", "Python with a Spark session on a folder or a server"),
    "bench": ("saros_shell.commands.bench", "measure writing and querying on this machine"),
    "tsfile": ("saros_shell.commands.tsfile", "inspect, verify or dump TsFiles"),
    "backup": ("saros_shell.commands.backup", "back up a folder or a server; list or verify backups"),
    "restore": ("saros_shell.commands.backup:restore", "create a data folder from a backup"),
    "sync": ("saros_shell.commands.sync", "send a folder's sealed data to other servers"),
    "verify": ("saros_shell.commands.verify", "check every checksum and page of a data folder"),
    "user": ("saros_shell.commands.user", "create an administrator, or set its password"),
    "audit": ("saros_shell.commands.audit", "check that the audit trail is unchanged"),
    "config": ("saros_shell.commands.config", "print the options in force and their sources"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the `saros` script."""
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
    quieten()
    write_lines()
    try:
        module, _, function = COMMANDS[words[0]][0].partition(":")
        code: int = getattr(importlib.import_module(module), function or "main")(words[1:])
    except KeyboardInterrupt:
        return 130
    return code


def usage() -> str:
    """The list of sub-commands."""
    rows = "\n".join(f"  {name:<11} {what}" for name, (_, what) in COMMANDS.items())
    return f"usage: saros COMMAND [ARGUMENTS]\n\n{rows}\n\nSee also: saros COMMAND --help, saros --version.\n"
