"""The user's preferences for the shell on a terminal: `$XDG_CONFIG_HOME/saros/config.toml`.

Without the file, all options have their defaults. An invalid option is reported with its line, and its default is used,
because a wrong preference must not lock the user out of the database.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from saros_server.config.did_you_mean import did_you_mean

#: Names of output formats.
FORMATS = ("table", "csv", "json", "vertical")


def _option(default: Any, meaning: str, choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"meaning": meaning, "choices": choices})


@dataclass(frozen=True, slots=True)
class ShellConfig:
    """The preferences. Each option is an attribute, with its default and its meaning."""

    colors: bool = _option(True, "colour statements while they are typed")
    complete_while_typing: bool = _option(False, "offer completions without Tab")
    confirm: bool = _option(True, "ask before `DELETE` and `DROP` with wildcards, and before `DROP DATABASE`")
    format: str = _option("table", "output format: table, csv, json, or vertical", FORMATS)
    null_text: str = _option("null", "text for null in tables and blocks")
    paging: bool = _option(True, "show long or wide results a screen at a time")
    prompt: str = _option("{target}> ", "prompt; `{target}` is user and address, or the folder; `{user}` the user")
    suggest_from_history: bool = _option(True, "suggest the rest of an earlier statement; the right arrow accepts it")
    timing: bool = _option(False, "print how long statements take")
    vi_mode: bool = _option(False, "edit with the keys of vi instead of those of Emacs")
    zone: str = _option("", "time zone of the session; empty: that of the server")


def config_folder() -> Path:
    """Return the folder of the user's configuration files for Saros, which need not exist."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "saros"


def load_config(file: Path) -> tuple[ShellConfig, list[str]]:
    """Return the preferences, and a message for each mistake in the file."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ShellConfig(), []
    except (OSError, UnicodeDecodeError) as error:
        return ShellConfig(), [f"cannot read {file}: {error.strerror if isinstance(error, OSError) else 'not UTF-8'}"]
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return ShellConfig(), [f"{file}: {error}; the options of this file are ignored"]
    mistakes = {key: mistake for key, value in values.items() if (mistake := _mistake_in(key, value))}
    good = {key: value for key, value in values.items() if key not in mistakes}
    return ShellConfig(**good), [f"{file}, line {_line_of(key, text)}: {said}" for key, said in mistakes.items()]


def describe_options() -> Iterator[tuple[str, str, str]]:
    """Yield the name, the default in TOML, and the meaning of each option."""
    for option in fields(ShellConfig):
        default = str(option.default).lower() if isinstance(option.default, bool) else f'"{option.default}"'
        yield option.name, default, option.metadata["meaning"]


def _mistake_in(key: str, value: object) -> str | None:
    options = {option.name: option for option in fields(ShellConfig)}
    if key not in options:
        return f"unknown option {key}{did_you_mean(key, options)}"
    choices = options[key].metadata["choices"]
    if choices and value not in choices:
        return f"{key} is one of {', '.join(choices)}, not {value!r}"
    if type(value) is not type(options[key].default):
        return f"{key} is {'true or false' if isinstance(options[key].default, bool) else 'a text'}, not {value!r}"
    return None


def _line_of(key: str, text: str) -> int:
    """Return the line of an option or of a table `[key]`, from 1."""
    pattern = rf"^\s*(?:\[+\s*)?[\"']?{re.escape(key)}[\"']?\s*[=.\]]"
    found = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, found.end()) + 1 if found else 1
