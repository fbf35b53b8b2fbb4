"""From when to when certificates are good, and whose they are. Pure: any thread."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509

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
    """Of the certificates in a PEM file. Raises ValueError: there is none, or one that cannot be read."""
    found = x509.load_pem_x509_certificates(pem)
    begin = max(certificate.not_valid_before_utc for certificate in found)
    return Validity(begin, min(certificate.not_valid_after_utc for certificate in found))


def names(pem: bytes, uri: str) -> bool:
    """Whether the first certificate of a PEM file has a URI among its names. Raises as `validity_of`."""
    extensions = x509.load_pem_x509_certificates(pem)[0].extensions
    try:
        found = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    return uri in found.get_values_for_type(x509.UniformResourceIdentifier)


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
