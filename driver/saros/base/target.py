"""Targets: `saros://` addresses in the form in which users write them. Pure: any thread.

    saros://[user[:password]@]host[:port][,host[:port]...][/][?consistency=strong|mid|weak][&tls=ca.pem]
        [&partial_results=true|false]

Users, passwords and options are percent-decoded. IPv6 addresses are written in brackets. Error messages do not repeat
the target, because its password must not appear in a log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv6Address
from urllib.parse import unquote

from saros.errors import InterfaceError
from saros_wire.protocol import DEFAULT_PORT

SCHEME = "saros://"
CONSISTENCIES = ("strong", "mid", "weak")
_OPTIONS = ("consistency", "tls", "partial_results")
_BOOLEANS = {"true": True, "false": False}
_HINT = "; in a user or password, write : @ / ? # % as %3A %40 %2F %3F %23 %25"
_PORT_DIGITS, _PORT_MAX = 5, 65_535


@dataclass(frozen=True, slots=True)
class Target:
    """The nodes to connect to, the user, and the options of reads.

    `addresses` are of the form host:port. If `consistency` is None, reads are strong. If `tls_ca` is None, connections
    have no TLS. `partial_results` None means False.
    """

    addresses: tuple[str, ...]
    user: str = ""
    password: str = field(default="", repr=False)
    consistency: str | None = None
    tls_ca: str | None = None
    partial_results: bool | None = None

    def override(
        self,
        *,
        user: str | None,
        password: str | None,
        consistency: str | None,
        tls_ca: str | None,
        partial_results: bool | None = None,
    ) -> Target:
        """Return the target with the arguments that are not None replaced. Raises InterfaceError."""
        return _checked(
            Target(
                self.addresses,
                self.user if user is None else user,
                self.password if password is None else password,
                self.consistency if consistency is None else consistency,
                self.tls_ca if tls_ca is None else tls_ca,
                self.partial_results if partial_results is None else partial_results,
            )
        )


def parse_target(text: str) -> Target:
    """Parse a `saros://` address. Raises InterfaceError."""
    if not text.startswith(SCHEME):
        raise InterfaceError("cannot connect: give a folder, or saros://host:port")
    rest, _, fragment = text.removeprefix(SCHEME).partition("#")
    rest, _, query = rest.partition("?")
    authority, _, path = rest.partition("/")
    if fragment or path:
        raise _wrong("has something after the addresses that is neither / nor ?" + _HINT)
    login, at, hosts = authority.rpartition("@")
    if "@" in login:
        raise _wrong("has more than one @: write one user and password before all addresses" + _HINT)
    user, _, password = login.partition(":")
    if at and not user:
        raise _wrong("has an @ but no user before it")
    options = dict(_options(query))
    return _checked(
        Target(
            tuple(dict.fromkeys(_address(host, number) for number, host in enumerate(hosts.split(","), 1))),
            _decoded(user, "user"),
            _decoded(password, "password"),
            options.get("consistency"),
            options.get("tls"),
            _boolean(options, "partial_results"),
        )
    )


def suggested_target(text: str) -> str | None:
    """Return the address that a text without all or part of the scheme probably means, or None for a folder."""
    rest = re.sub(r"^saros:/?", "", text)
    return SCHEME + rest if rest != text or re.fullmatch(r"[\w.-]+:\d+(,.*)?/?", text) else None


def without_password(text: str) -> str:
    """Return a target with its password masked, for display. Folders are returned unchanged."""
    return re.sub(r"^(saros://[^:@]*):.*@", r"\1:***@", text, flags=re.DOTALL)


def _checked(target: Target) -> Target:
    if target.password and not target.user:
        raise _wrong("has a password and no user")
    if target.consistency not in (None, *CONSISTENCIES):
        raise _wrong(f"has an unknown consistency: use one of {', '.join(CONSISTENCIES)}")
    if target.tls_ca == "":
        raise _wrong("has an empty tls: give the file of the certificate authority")
    return target


def _address(text: str, number: int) -> str:
    """Return one address as host:port. Raises InterfaceError."""
    which = f"has an address (number {number})"
    bracketed = re.fullmatch(r"\[([^\[\]]*)\](?::(.*))?", text)
    if bracketed is not None:
        host, port = bracketed[1], bracketed[2]
        try:
            IPv6Address(host)
        except AddressValueError:
            raise _wrong(f"{which} with brackets around something that is not an IPv6 address") from None
        return f"[{host}]:{_port(port, which)}"
    if "[" in text or "]" in text:
        raise _wrong(f"{which} with brackets that do not match")
    if text.count(":") > 1:
        raise _wrong(f"{which} with several colons: put an IPv6 address in brackets")
    host, colon, port = text.partition(":")
    if not host:
        raise _wrong(f"{which} without a host")
    if re.search(r"[^\w.-]", host):
        raise _wrong(f"{which} whose host has a character that host names cannot have" + _HINT)
    return f"{host}:{_port(port if colon else None, which)}"


def _port(text: str | None, which: str) -> int:
    if text is None:
        return DEFAULT_PORT
    if not (text.isascii() and text.isdigit() and len(text) <= _PORT_DIGITS and 0 < int(text) <= _PORT_MAX):
        raise _wrong(f"{which} whose port is not a number from 1 to {_PORT_MAX}" + _HINT)
    return int(text)


def _options(query: str) -> Iterator[tuple[str, str]]:
    seen = set()
    for pair in query.split("&") if query else ():
        name, equals, value = pair.partition("=")
        if not equals or name not in _OPTIONS:
            raise _wrong(f"has an unknown option: use {', '.join(option + '=' for option in _OPTIONS)}")
        if name in seen:
            raise _wrong(f"has the option {name} twice")
        seen.add(name)
        yield name, _decoded(value, name)


def _boolean(options: Mapping[str, str], name: str) -> bool | None:
    text = options.get(name)
    if text is not None and text not in _BOOLEANS:
        raise _wrong(f"has a {name} that is neither true nor false")
    return None if text is None else _BOOLEANS[text]


def _decoded(text: str, what: str) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise _wrong(f"has a % in its {what} without two hexadecimal digits after it" + _HINT)
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise _wrong(f"has a {what} that is not UTF-8") from None


def _wrong(what: str) -> InterfaceError:
    return InterfaceError(f"the target {what}")
