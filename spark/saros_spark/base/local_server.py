"""A server for a data folder, which ends when the process that started the server ends.

    this process ── writing end of a pipe ──> standard input of the server        end of input -> SIGTERM -> it stops

The pipe is closed when the `with` block of `serving` or the process ends, even after `kill -9`. The server runs in a
separate process session, so that Ctrl-C in a terminal reaches only the job. The end of the job's block then stops the
server in an orderly way. The server's program is `tied_server`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from saros_spark.base.errors import SourceError

_POLL_SECONDS = 0.05


@contextmanager
def serving(folder: str) -> Iterator[str]:
    """Serve a data folder to Spark's processes while the block runs; yield the target for the option url.

    If the folder has a server already, that server is used and keeps running. A server that was started here also stops
    if this process is killed. Raises SourceError if the server does not start, for example because this process has the
    folder open.
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
    """Wait until the server has started, and return its target. Raises SourceError."""
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
