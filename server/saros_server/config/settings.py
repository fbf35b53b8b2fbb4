"""The options of a running node: SET, LOAD and SHOW CONFIGURATION.

    SET CONFIGURATION --check--> saros.toml (replaced durably) --┐
    LOAD CONFIGURATION ------------------------------------------┴--> read all sources --> `current` --> listeners

An option takes effect at once (`Effect.NOW`) or when the node starts again; until then, SHOW CONFIGURATION shows both
values. Nothing changes if a key or value is wrong, or if the file cannot be written. Comments in the file are kept.

Thread-safe. Listeners are called one at a time, and must not raise.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import Field
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from saros_engine.base.node_settings import SettingRow
from saros_server.config.configuration import (
    CONFIGURATION_FILE,
    OPTIONS,
    Configuration,
    ConfigurationError,
    Effect,
    Loaded,
    is_overridden,
    load_again,
    option_text,
    parse_option,
)
from saros_storage.base.errors import UserMistake
from saros_storage.folder.layout import write_durably
from saros_storage.io.disk import Disk

logger = logging.getLogger(__name__)


class Settings:
    """The current options of a node, and the file that they come from. Implements `NodeSettings`."""

    def __init__(self, folder: str, loaded: Loaded, disk: Disk) -> None:
        #: The configuration file; not a symbolic link, so that replacing the file keeps a link to it.
        self._path = os.path.realpath(os.path.join(folder, CONFIGURATION_FILE))
        self._disk = disk
        self._changing = threading.Lock()
        self._listeners: list[Callable[[Configuration], None]] = []
        inputs = replace(loaded.inputs, folder=os.path.abspath(folder))
        #: The last reading of the sources. It differs from `current` in options that take effect after a restart.
        self._loaded = replace(loaded, inputs=inputs)
        #: The options in force.
        self.current = loaded.values

    def subscribe(self, listener: Callable[[Configuration], None]) -> None:
        """Call `listener` with the new options after each change."""
        self._listeners.append(listener)

    def set(self, values: Mapping[str, str]) -> None:
        """See `NodeSettings.set`."""
        with self._changing, _mistakes():
            for key, value in values.items():
                self._check(key, value)
            load_again(self._loaded)  # the other lines of the file must be right, too
            self._write(values)
            self._load()

    def load(self) -> None:
        """See `NodeSettings.load`."""
        with self._changing, _mistakes():
            self._load()

    def rows(self) -> list[SettingRow]:
        """See `NodeSettings.rows`."""
        with self._changing:
            loaded, current = self._loaded, self.current
        return [
            SettingRow(
                name=name,
                value=option_text(getattr(current, name)),
                default=option_text(option.default),
                after_restart=option_text(getattr(loaded.values, name)),
                source=loaded.sources[name],
                effect=option.metadata["effect"].value,
                description=option.metadata["doc"],
            )
            for name, option in OPTIONS.items()
        ]

    def _check(self, key: str, value: str) -> None:
        """Raise ConfigurationError unless a statement may set the option to the value."""
        parse_option(key, value)
        metadata = OPTIONS[key].metadata
        if metadata["effect"] is Effect.NEVER:
            raise ConfigurationError(f"option {key} is fixed when a folder is created; export the data to a new folder")
        if metadata["file_only"]:
            raise ConfigurationError(f"statements cannot change option {key}: edit {self._path} on the node instead")
        if is_overridden(self._loaded, key):
            source = self._loaded.sources[key]
            raise ConfigurationError(
                f"option {key} is set by a stronger source than the file ({source}): change it there"
            )

    def _write(self, values: Mapping[str, str]) -> None:
        import tomlkit  # only needed for this statement

        file = Path(self._path)
        document = tomlkit.parse(file.read_text(encoding="utf-8") if file.exists() else "")
        for key, value in values.items():
            document[key] = int(value) if value.isdecimal() else value
        try:
            write_durably(self._disk, self._path, tomlkit.dumps(document).encode())
        except OSError as error:
            raise ConfigurationError(f"cannot write {self._path}: {error.strerror}") from error

    def _load(self) -> None:
        loaded = load_again(self._loaded)
        now = {name: getattr(loaded.values, name) for name, option in OPTIONS.items() if _is_live(option)}
        changed = {name: option_text(value) for name, value in now.items() if value != getattr(self.current, name)}
        self._loaded = loaded
        self.current = replace_fields(self.current, **now)
        if changed:
            logger.info("options changed", extra={"options": changed})
            for listener in self._listeners:
                listener(self.current)


def _is_live(option: Field[Any]) -> bool:
    return option.metadata["effect"] is Effect.NOW


@contextmanager
def _mistakes() -> Iterator[None]:
    """Raise a ConfigurationError of the block as the mistake of a statement."""
    try:
        yield
    except ConfigurationError as error:
        raise UserMistake(str(error), code=error.code) from error
