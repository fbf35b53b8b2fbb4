"""`saros config [FOLDER]`: the options in force for a folder, each with its source and meaning."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from saros_server.config.arguments import CommandParser
from saros_server.config.configuration import ConfigurationError, configuration_file, describe, load


def main(arguments: Sequence[str]) -> int:
    """Print the options and return the exit code, 2 for an invalid option."""
    options = parser().parse_args(arguments)
    try:
        pairs = dict(text.split("=", 1) if "=" in text else (text, "") for text in options.overrides)
        loaded = load(folder=options.folder, file=options.config or configuration_file(options.folder), overrides=pairs)
    except ConfigurationError as error:
        sys.stderr.write(f"saros config: {error}\n")
        return 2
    for key, value, source, meaning in describe(loaded):
        sys.stdout.write(f"{key} = {value}\n    {meaning} [{source}]\n")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of `saros config`."""
    made = CommandParser(prog="saros config", description="Print the options in force.")
    made.add_argument("folder", nargs="?", default="./data", help="data folder with the saros.toml (default ./data)")
    made.add_argument("--config", metavar="FILE", help="another configuration file")
    made.add_argument(
        "--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="override an option"
    )
    return made
