"""`saros audit verify`: checks that the audit trail of a folder is unchanged.

Exit codes: 0 unchanged, 1 changed or unreadable, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from saros_server.auth.audit import verify
from saros_server.config.arguments import CommandParser
from saros_server.config.data_folder import reason
from saros_storage.base.errors import StorageError
from saros_storage.io.disk import LocalDisk


def main(arguments: Sequence[str]) -> int:
    """Run `saros audit` and return its exit code."""
    options = parser().parse_args(arguments)
    try:
        found = verify(options.data, LocalDisk())
    except (StorageError, OSError) as error:
        sys.stderr.write(f"saros audit: {reason(error)}\n")
        return 1
    if found.first == 0:
        sys.stdout.write(f"{options.data} has no audit trail\n")
        return 0
    sys.stdout.write(f"lines {found.first} to {found.head.number} are unchanged; head {found.head.hash}\n")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of `saros audit`."""
    made = CommandParser(prog="saros audit", description="Check that the audit trail is unchanged.")
    made.add_argument("what", choices=("verify",), metavar="VERB", help="verify: check that it is unchanged")
    made.add_argument("--data", default="./data", metavar="FOLDER", help="data folder (default ./data)")
    return made
