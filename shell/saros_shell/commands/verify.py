"""`saros verify DIR`: checks all checksums of a data folder, and changes nothing.

No process may serve the folder during the check. The folder may be on a read-only file system. Exit codes: 0 no
problems, 1 problems, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from saros_cluster.node.verify import NodeResult, check_node
from saros_server.config.arguments import CommandParser
from saros_server.config.data_folder import reason
from saros_shell.commands.read_only_folders import hold
from saros_storage.base.errors import StorageError
from saros_storage.folder_check import FolderResult, check_folder
from saros_storage.io.disk import LocalDisk


def main(arguments: Sequence[str]) -> int:
    """Check a folder and return the exit code."""
    options = parser().parse_args(arguments)
    if not os.path.isdir(options.folder):
        sys.stderr.write(f"saros verify: {options.folder} is not a folder\n")
        return 2
    try:
        with hold(options.folder, "saros verify"):
            disk = LocalDisk()
            result = check_folder(options.folder, disk, lambda path: _print_path(path, options))
            node = check_node(options.folder, disk)
    except (StorageError, OSError) as error:
        sys.stderr.write(f"saros verify: {reason(error)}\n")
        return 1
    result.problems += node.problems
    (_print_json if options.json else _print)(options.folder, result, node)
    return 1 if result.problems else 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of `saros verify`."""
    made = CommandParser(prog="saros verify", description="Check every checksum and page of a data folder.")
    made.add_argument("folder", metavar="DIR", help="data folder that no process has open")
    made.add_argument("--json", action="store_true", help="one JSON object")
    made.add_argument("--quiet", action="store_true", help="do not print the files being read")
    return made


def _print_path(path: str, options: argparse.Namespace) -> None:
    """Print the name of the file that is being read, if the output is a terminal."""
    if sys.stderr.isatty() and not options.quiet:
        sys.stderr.write(f"{path}\n")


def _counts(result: FolderResult, node: NodeResult) -> dict[str, int]:
    names = ("partitions", "files", "file_bytes", "points", "log_records")
    counts = {name: getattr(result, name) for name in names}
    return counts | {"groups": node.groups, "log_entries": node.entries} if node.groups else counts


def _print(folder: str, result: FolderResult, node: NodeResult) -> None:
    for error in result.problems:
        sys.stdout.write(f"{error}\n")
    for path, why in result.set_aside:
        sys.stdout.write(f"set aside earlier: {path}: {why}\n")
    counts = _counts(result, node)
    width = max(map(len, counts))
    sys.stdout.writelines(f"{name.replace('_', ' '):<{width}}  {count:>15,}\n" for name, count in counts.items())
    problems = len(result.problems)
    verdict = f"{problems} problem{'' if problems == 1 else 's'}" if problems else "all is well"
    sys.stdout.write(f"{folder}: {verdict}\n")


def _print_json(folder: str, result: FolderResult, node: NodeResult) -> None:
    words = {
        "folder": folder,
        "ok": not result.problems,
        **_counts(result, node),
        "problems": [str(error) for error in result.problems],
        "set_aside": [list(item) for item in result.set_aside],
    }
    sys.stdout.write(json.dumps(words, ensure_ascii=False) + "\n")
