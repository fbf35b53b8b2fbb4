"""From when to when a certificate is good, and whose it is, as its bytes say it. Pure: any thread.

    Certificate ::= SEQUENCE { tbsCertificate SEQUENCE { [0] version, serial, algorithm, issuer, validity, ... }, ... }
    validity    ::= SEQUENCE { notBefore Time, notAfter Time }        RFC 5280, 4.1; lengths as in X.690, 8.1.3

Only what OpenSSL has read before comes here: no check of the rest.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_VERSION, _UTC_TIME = 0xA0, 0x17
#: Behind version and serial: algorithm, issuer, validity.
_VALIDITY = 3
_LONG = 0x80
#: Whoever renews certificates by hand has a month for it.
_SOON = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Validity:
    """The times within which all certificates of a file are good."""

    begin: datetime
    end: datetime

    def problem(self, path: str, now: datetime) -> str | None:
        """What is to be said of the file's certificate; None: it is good for long."""
        if now < self.begin:
            return f"{path} is a certificate from {_day(self.begin)} on: is the clock of this machine right?"
        if now >= self.end:
            return f"the certificate {path} has expired on {_day(self.end)}: renew it"
        if self.end - now < _SOON:
            return f"the certificate {path} expires on {_day(self.end)}: renew it"
        return None


def validity_of(pem: bytes) -> Validity:
    """Of the certificates in a PEM file, of which there is at least one."""
    times = [_times(der) for der in _certificates(pem)]
    return Validity(max(begin for begin, _ in times), min(end for _, end in times))


def names(pem: bytes, uri: str) -> bool:
    """Whether the first certificate of a PEM file has a URI among its names."""
    return uri.encode() in _certificates(pem)[0]


def _certificates(pem: bytes) -> list[bytes]:
    return [ssl.PEM_cert_to_DER_cert(block.decode()) for block in _BLOCK.findall(pem)]


def _times(der: bytes) -> tuple[datetime, datetime]:
    ((_, certificate),) = _items(der)
    _, signed = next(_items(certificate))
    fields = [content for tag, content in _items(signed) if tag != _VERSION]
    begin, end = (_time(*item) for item in _items(fields[_VALIDITY]))
    return begin, end


def _items(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Tags and contents of what is written one after the other."""
    place = 0
    while place < len(der):
        tag, length = der[place], der[place + 1]
        place += 2
        if length & _LONG:
            count = length & ~_LONG
            length = int.from_bytes(der[place : place + count])
            place += count
        yield tag, der[place : place + length]
        place += length


def _time(tag: int, content: bytes) -> datetime:
    text = content.decode()
    if tag == _UTC_TIME:  # years of two digits, up to 2049
        text = ("20" if text < "50" else "19") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
