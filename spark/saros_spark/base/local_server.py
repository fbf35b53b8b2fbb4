"""A server for a folder, for as long as the process that wants it lives.

    who wants it ── writing end of a pipe ──> standard input of the server        end of the pipe -> SIGTERM -> it stops

The pipe ends when the block does and when the process does, however that dies: the server outlives no `kill -9`. It has
a session of its own, so that Ctrl-C in a terminal reaches the job alone, whose block ends it in order. The server is
`tied_server`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from saros_spark.base.errors import SourceError

_POLL_SECONDS = 0.05


@contextmanager
def serving(folder: str) -> Iterator[str]:
    """Serve a data folder to Spark's processes while the block runs; the target is what the block gets.

    A folder that is served already stays served. If this process is killed, the server ends, too. Raises SourceError:
    the server does not start, such as when this process has the folder open.
    """
    from saros_server.process.server_file import serving as found_server

    found = found_server(folder)
    if found is not None:
        yield f"saros://{found.address}"
        return
    process = _started(folder)
    try:
        yield _address_of(process, folder)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        failed = process.wait()
    if failed:
        raise _refusal(folder)


def _started(folder: str) -> subprocess.Popen[bytes]:
    from saros_server.auth.security import check_folder
    from saros_server.config.configuration import ConfigurationError
    from saros_server.process.daemon import launch_command
    from saros_storage.base.errors import StorageError

    try:
        check_folder(folder)
        return launch_command(folder, ["saros_spark.base.tied_server", folder], stdin=subprocess.PIPE)
    except (ConfigurationError, OSError, StorageError) as error:
        raise SourceError(str(error)) from error


def _address_of(process: subprocess.Popen[bytes], folder: str) -> str:
    """Where it serves, once it does. Raises SourceError."""
    from saros_server.process.server_file import serving as found_server

    while True:
        found = found_server(folder)
        if found is not None and found.pid == process.pid:
            return f"saros://{found.address}"
        try:
            process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        raise _refusal(folder)


def _refusal(folder: str) -> SourceError:
    from saros_server.process.daemon import last_log_line

    return SourceError(last_log_line(folder))
