"""`saros mqtt` in a separate process, for tests that kill this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from waiting import PATIENCE_S, wait_until

#: Options for messages that each contain a number and its time.
NUMBERS = ("--topic", "plant/+", "--path", "root.plant.{1}", "--time-key", "t")


class CommandProcess:
    """A running `saros mqtt`, whose output goes to files in `folder`."""

    def __init__(self, folder: Path, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._output = folder / "out"
        self._errors = folder / "errors"
        with self._output.open("w") as output, self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "saros_shell", "mqtt", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd=folder,
                env={**os.environ, **(environment or {})},
            )

    @property
    def output(self) -> str:
        return self._output.read_text()

    @property
    def errors(self) -> str:
        return self._errors.read_text()

    def wait_ready(self) -> None:
        """Wait until the process has subscribed."""
        wait_until(lambda: "receiving" in self.output or self._process.poll() is not None)
        assert self._process.poll() is None, self.errors

    def wait(self) -> int:
        return self._process.wait(PATIENCE_S)

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send a signal, and return the exit code."""
        self._process.send_signal(number)
        return self.wait()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def receiving(
    folder: Path, arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> Iterator[CommandProcess]:
    """Yield a process that has subscribed. Kill it at the end."""
    command = CommandProcess(folder, arguments, environment)
    try:
        command.wait_ready()
        yield command
    except BaseException as error:
        error.add_note(f"{command.output}\n{command.errors}")
        raise
    finally:
        command.kill()
