"""`python -m saros_spark.base.tied_server FOLDER`: a server that stops when its standard input ends.

`local_server` starts it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from saros_server.foreground import main as serve


def main(folder: str) -> int:
    """Serve the folder on free ports of this machine; return the exit code."""
    threading.Thread(target=_stop_at_the_end_of_input, daemon=True).start()
    return serve(["--data", folder, "--port", "0", "--http-port", "0"])


def _stop_at_the_end_of_input() -> None:
    while os.read(sys.stdin.fileno(), 1):  # not sys.stdin.read: a thread that waits in it would block the exit
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
