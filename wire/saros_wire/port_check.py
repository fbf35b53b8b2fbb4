"""A check that a server can listen on an address.

If the server cannot listen, the error gives the reason, which gRPC does not report.
"""

from __future__ import annotations

import errno
import socket

_ADVICE = {
    errno.EADDRINUSE: "another process uses the port: stop it, or choose another port",
    errno.EADDRNOTAVAIL: "this machine does not have the address: choose another one",
    errno.EACCES: "ports below 1024 need administrator rights: choose another one",
}


def check_address(host: str, port: int) -> None:
    """Check that a server can listen on an address. Port 0 stands for any free port.

    Raises RuntimeError with the reason. gRPC raises the same class without a reason.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise RuntimeError(_ADVICE.get(error.errno or 0, error.strerror or str(error))) from error
