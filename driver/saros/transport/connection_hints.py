"""Hints for a failed connection: a user, TLS or the right authority may be missing. Pure: any thread."""

from __future__ import annotations

from saros.base.target import Target

_WRONG_LOGIN = 801
#: What gRPC says, with and without TLS on this side, and what to do about it.
_WITHOUT_TLS = (("Socket closed", "if the server speaks TLS, add /?tls=ca.pem"),)
_WITH_TLS = (
    ("WRONG_VERSION_NUMBER", "the server does not speak TLS: leave tls away"),
    ("certificate has expired", "renew it, unless the clock of this machine is wrong"),
    ("certificate is not yet valid", "the clock of this machine is wrong, or that of who made it"),
    ("CERTIFICATE_VERIFY_FAILED", "{tls} has not signed the server's certificate"),
    ("Hostname Verification", "the server's certificate is for other names: use one of those"),
)


def connection_hint(target: Target, code: int, said: str) -> str:
    """What to add to the sentence of a failed connection; often nothing."""
    if code == _WRONG_LOGIN and not target.user:
        return ": name a user, saros://user:password@host:port"
    if code == _WRONG_LOGIN and not target.password:
        return ": no password was given; commands take it from SAROS_PASSWORD, or ask for it on a terminal"
    known = _WITHOUT_TLS if target.tls_ca is None else _WITH_TLS
    found = next((what for words, what in known if words in said), None)
    return "" if found is None else f"; {found.format(tls=target.tls_ca)}"
