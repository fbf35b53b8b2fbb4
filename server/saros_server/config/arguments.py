"""Parse the command lines of `saros` and its sub-commands with `argparse`, and suggest words for misspelled ones."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any

from saros_server.config.did_you_mean import did_you_mean

_KINDS: dict[object, str] = {int: "a whole number", float: "a number"}


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors suggest a known word that resembles the misspelled one.

    Parsers of sub-commands have the same class.
    """

    def parse_known_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse as `argparse` does, but reject unknown arguments here, since this parser can suggest its options.

        Exits with 2.
        """
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            word = next((word for word in rest if word.startswith("-")), rest[0])
            if word.startswith("-"):
                name = word.partition("=")[0]
                self.error(f"unknown option {name}{did_you_mean(name, self._option_string_actions)}")
            self.error(f"unexpected argument {word!r}")
        return found, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = list(map(str, action.choices))
            meant = did_you_mean(str(value), known)
            raise argparse.ArgumentError(action, f"{value!r} is not one of {', '.join(known)}{meant}")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            if action.type not in _KINDS:
                raise
            raise argparse.ArgumentError(action, f"{arg_string!r} is not {_KINDS[action.type]}") from None


def data_parser(name: str, what: str, *, epilog: str | None = None) -> argparse.ArgumentParser:
    """Return the parser that `saros start`, `stop` and `status` have in common."""
    made = CommandParser(prog=f"saros {name}", description=what, epilog=epilog)
    made.add_argument("--data", default="./data", metavar="FOLDER", help="data folder (default ./data)")
    return made


def at_least(least: int) -> Callable[[str], int]:
    """Return the type of an argument: an integer of at least `least`."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not {_KINDS[int]}") from None
        if number < least:
            raise argparse.ArgumentTypeError(f"{number} is too small: at least {least}")
        return number

    return read
