"""Passwords: strength rules, hashing and verification.

    $scrypt$ln=15,r=8,p=3$<salt>$<hash>        scrypt of the NFKC form; ln: log2 of the blocks, 128 * r bytes each

A hash contains its parameters, so the cost can be raised later. An older hash stays valid, and is replaced when its
user logs in. Comparison takes constant time. This module neither stores nor prints passwords.

Any thread. A hash takes a few tenths of a second of processor time, and releases the GIL.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import unicodedata

import msgspec

from saros_storage.base.errors import UserMistake

CHARACTERS_MIN = 12
#: The maximum length of a password. Longer passwords would take longer to hash and add no security.
BYTES_MAX = 1_024
_WEAK = 2041
_SALT_BYTES, _HASH_BYTES = 16, 32
#: A stored hash with higher parameters is rejected: verifying it could exhaust the memory.
_LN_MAX, _R_MAX, _P_MAX = 20, 16, 16
_SLACK = 1 << 20
_PHC = re.compile(r"\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)")
_ONE_TIME_BYTES = 15


class Cost(msgspec.Struct, frozen=True):
    """The cost of one hash: 2^ln blocks of 128 * r bytes, p times."""

    ln: int = 15
    r: int = 8
    p: int = 3


def check_password(user: str, password: str) -> None:
    """Raise UserMistake 2041 for a password that is too easy to guess, or too long."""
    normal = _normal(password)
    if len(normal) < CHARACTERS_MIN:
        raise UserMistake(f"the password is too short: at least {CHARACTERS_MIN} characters are needed", code=_WEAK)
    if len(normal.encode()) > BYTES_MAX:
        raise UserMistake(f"the password is too long: at most {BYTES_MAX} bytes are allowed", code=_WEAK)
    if normal.casefold() == _normal(user).casefold():
        raise UserMistake("the password is the user's name: choose another one", code=_WEAK)


def hash_password(password: str, cost: Cost) -> str:
    """Return the hash of a password with a random salt, in PHC format."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return _phc(cost, salt, _scrypt(password, salt, cost))


def verify_password(password: str, phc: str) -> bool:
    """Return whether a password matches a hash. Raises ValueError if `phc` is not a valid hash."""
    cost, salt, expected = _parse(phc)
    return hmac.compare_digest(expected, _scrypt(password, salt, cost))


def is_outdated(phc: str, cost: Cost) -> bool:
    """Return whether a hash has a different cost than `cost`. Raises ValueError if `phc` is not a valid hash."""
    return _parse(phc)[0] != cost


def dummy_hash(cost: Cost) -> str:
    """Return a hash that no password matches, which takes as long to verify as a real one."""
    return _phc(cost, secrets.token_bytes(_SALT_BYTES), secrets.token_bytes(_HASH_BYTES))


def one_time_password() -> str:
    """Return a random password that cannot be guessed."""
    return base64.b32encode(secrets.token_bytes(_ONE_TIME_BYTES)).decode().lower()


def _normal(password: str) -> str:
    return unicodedata.normalize("NFKC", password)


def _scrypt(password: str, salt: bytes, cost: Cost) -> bytes:
    n = 1 << cost.ln
    memory = 128 * cost.r * (n + cost.p) + _SLACK
    return hashlib.scrypt(
        _normal(password).encode(), salt=salt, n=n, r=cost.r, p=cost.p, maxmem=memory, dklen=_HASH_BYTES
    )


def _phc(cost: Cost, salt: bytes, digest: bytes) -> str:
    return f"$scrypt$ln={cost.ln},r={cost.r},p={cost.p}${_base64(salt)}${_base64(digest)}"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")


def _parse(phc: str) -> tuple[Cost, bytes, bytes]:
    match = _PHC.fullmatch(phc)
    if match is None:
        raise ValueError("not a password hash")
    ln, r, p = (int(number) for number in match.groups()[:3])
    if not (1 <= ln <= _LN_MAX and 1 <= r <= _R_MAX and 1 <= p <= _P_MAX):
        raise ValueError("a password hash whose cost is too high")
    salt, digest = (base64.b64decode(text + "=" * (-len(text) % 4)) for text in match.groups()[3:])
    return Cost(ln, r, p), salt, digest
