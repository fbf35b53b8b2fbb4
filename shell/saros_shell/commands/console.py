"""`saros console [TARGET]`: opens the console of a folder or of a running node in the browser.

If a server has the folder open, the server's console is shown. Otherwise this process opens the folder and serves a
console on this machine until Ctrl-C, only to the browser that opens the link.

Exit codes: 0 success, 1 failure, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import threading
import webbrowser
from collections.abc import Sequence

from saros.base.target import SCHEME
from saros_server.config.arguments import CommandParser
from saros_server.config.configuration import ConfigurationError
from saros_server.config.data_folder import reason
from saros_server.process.server_file import serving
from saros_storage.base.errors import StorageError
from saros_wire.protocol import DEFAULT_HTTP_PORT

_LOOK_SECONDS = 0.5
_HOST = re.compile(r"(\[[0-9a-fA-F:]+\]|[\w.-]+)(:\d+)?")


def main(arguments: Sequence[str]) -> int:
    """Open a console, and return the exit code."""
    options = parser().parse_args(arguments)
    url = _url_of(options.target)
    if url is not None:
        return _show(f"{url}/console/", options)
    found = serving(options.target)
    if found is None:
        return _serve(options)
    if not found.http:
        sys.stderr.write(
            f"saros console: process {found.pid} serves {options.target} without HTTP; restart it with --http-port\n"
        )
        return 1
    return _show(f"{found.http}/console/", options)


def parser() -> argparse.ArgumentParser:
    """Return the parser of `saros console`."""
    made = CommandParser(prog="saros console", description="Open the browser console of a folder or a node.")
    made.add_argument(
        "target",
        nargs="?",
        default="./data",
        help=f"data folder (default ./data), or a running node: http(s)://host:port, host:port (default HTTP port"
        f" {DEFAULT_HTTP_PORT})",
    )
    made.add_argument("--port", type=int, default=0, metavar="N", help="port for a folder (default: any free one)")
    made.add_argument("--no-browser", action="store_true", help="print the link without opening a browser")
    return made


def _url_of(target: str) -> str | None:
    """Return the URL of a running node's HTTP service, or None if the target is a folder."""
    if target.startswith(("http://", "https://")):
        return target.removesuffix("/").removesuffix("/console")
    if target.startswith(SCHEME):
        host = target.removeprefix(SCHEME).partition("/")[0].rpartition("@")[2].partition(",")[0]
        found = _HOST.fullmatch(host)
        return f"http://{found[1] if found else host}:{DEFAULT_HTTP_PORT}"
    found = _HOST.fullmatch(target)
    if found is not None and (found[2] or target == "localhost"):
        return f"http://{found[1]}{found[2] or f':{DEFAULT_HTTP_PORT}'}"
    return None


def _show(link: str, options: argparse.Namespace) -> int:
    sys.stdout.write(f"{link}\n")
    sys.stdout.flush()
    if not options.no_browser:
        webbrowser.open(link)
    return 0


def _serve(options: argparse.Namespace) -> int:
    """Serve a folder until Ctrl-C."""
    from saros_server.embedded_console import EmbeddedConsole
    from saros_server.process.warm_up import WarmUp

    try:
        console = EmbeddedConsole(options.target, options.port)
    except (StorageError, ConfigurationError, OSError) as error:
        sys.stderr.write(f"saros console: {reason(error)}\n")
        return 1
    try:
        sys.stdout.write(f"console of {options.target}, for one browser; Ctrl-C stops it\n")
        _show(console.link(), options)
        warming = WarmUp()  # runs while the user looks at the page
        warming.start()
        ended = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ended.set())
        while not ended.wait(_LOOK_SECONDS):  # polls: if another thread gets the signal, `wait` does not end
            pass
        warming.stop()
    finally:
        console.close()
    return 0
