"""Secrets of API tokens: their form, and their hash.

    saros_ <32 random bytes, base64url: 43 characters> <CRC-32 of all before, base64url: 6 characters>

A secret has 256 random bits, so one SHA-256 protects it as well as the slow hash for passwords would. So a login with a
token takes microseconds. The checksum distinguishes a mistyped secret from a revoked one before any look-up. Programs
that scan source code can recognize a secret by its form, and so find secrets that were published by mistake.

Pure but for `new_secret`. Any thread.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import zlib

_PREFIX = "saros_"
_RANDOM_BYTES = 32
_CHECKSUM_CHARACTERS = 6
_FORM = re.compile(r"saros_[A-Za-z0-9_-]{49}")
_FINGERPRINT_CHARACTERS = 8


def new_secret() -> str:
    """Return a new random secret."""
    body = _PREFIX + _base64url(secrets.token_bytes(_RANDOM_BYTES))
    return body + _checksum(body)


def has_form(text: str) -> bool:
    """Return whether a text has the form of a secret, without a check of the checksum."""
    return _FORM.fullmatch(text) is not None


def has_checksum(secret: str) -> bool:
    """Return whether the checksum of a text, which has the form of a secret, is correct."""
    return _checksum(secret[:-_CHECKSUM_CHARACTERS]) == secret[-_CHECKSUM_CHARACTERS:]


def digest_of(secret: str) -> str:
    """Return the hash by which a secret is stored."""
    return hashlib.sha256(secret.encode()).hexdigest()


def fingerprint(secret: str) -> str:
    """Return the first characters of the hash, which identify a secret in logs."""
    return digest_of(secret)[:_FINGERPRINT_CHARACTERS]


def _checksum(body: str) -> str:
    return _base64url(zlib.crc32(body.encode()).to_bytes(4, "big"))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
