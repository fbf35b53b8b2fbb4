"""The options of a node, for SET, LOAD and SHOW CONFIGURATION. The server implements `NodeSettings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec


class SettingRow(msgspec.Struct, frozen=True):
    """One option. Values are texts, as in the configuration file."""

    name: str
    value: str
    default: str
    #: The value in the configuration file. It differs from `value` if it takes effect when the node starts again.
    after_restart: str
    #: The source of the value, such as a file's path, `default` or `environment`.
    source: str
    #: When a new value takes effect: `now`, `restart` or `never`.
    effect: str
    description: str


class NodeSettings(Protocol):
    """The options of this node. Implementations are thread-safe."""

    def set(self, values: Mapping[str, str]) -> None:
        """Write options to the configuration file, and apply the options that can change while the node runs.

        Raises UserMistake 2004 (an option or a value is wrong, or the file cannot be written) without any change.
        """
        ...

    def load(self) -> None:
        """Read the configuration file again, and apply the options that can change while the node runs.

        Raises UserMistake 2004 (the file is wrong) without any change.
        """
        ...

    def rows(self) -> Sequence[SettingRow]:
        """Return all options."""
        ...
