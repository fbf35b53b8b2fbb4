"""Changes of users, roles, privileges and API tokens: values, and their bytes for a log.

Commands never contain a password or a token's secret. They contain hashes, which the caller has computed. So a log or a
snapshot contains no secret, and applying a command is cheap. Decoding checks every field. Invalid bytes mean a corrupt
log.

Pure values: any thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import Enum

from saros_cluster.users.privileges import Privilege
from saros_storage.base.errors import CorruptFile, NewerFormat


class Kind(Enum):
    """The kind of a grantee."""

    USER = "user"
    ROLE = "role"


@dataclass(frozen=True, slots=True)
class Grantee:
    """A user or a role."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name}"


@dataclass(frozen=True, slots=True)
class CreateUser:
    """Create a user. If `must_change`, a login with the password may only set a new password."""

    name: str
    hash: str = field(repr=False)
    administrator: bool = False
    must_change: bool = False


@dataclass(frozen=True, slots=True)
class DropUser:
    """Remove a user."""

    name: str


@dataclass(frozen=True, slots=True)
class SetPassword:
    """Set a user's password."""

    name: str
    hash: str = field(repr=False)
    must_change: bool = False


@dataclass(frozen=True, slots=True)
class Rehash:
    """Store another hash of the same password. This has no effect if the password has changed since."""

    name: str
    before: str = field(repr=False)
    hash: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class CreateRole:
    """Create a role."""

    name: str


@dataclass(frozen=True, slots=True)
class DropRole:
    """Remove a role, and take it from all users that have it."""

    name: str


@dataclass(frozen=True, slots=True)
class GrantRole:
    """Give a role to a user."""

    role: str
    user: str


@dataclass(frozen=True, slots=True)
class RevokeRole:
    """Take a role from a user."""

    role: str
    user: str


@dataclass(frozen=True, slots=True)
class Grant:
    """Grant privileges on areas (canonical). If `option`, the holder may grant the privileges to others."""

    privileges: tuple[Privilege, ...]
    areas: tuple[str, ...]
    to: Grantee
    option: bool = False


@dataclass(frozen=True, slots=True)
class Revoke:
    """Revoke privileges on areas and on all areas within them."""

    privileges: tuple[Privilege, ...]
    areas: tuple[str, ...]
    of: Grantee


@dataclass(frozen=True, slots=True)
class CreateToken:
    """Give a user a token.

    `digest` is the SHA-256 of the token's secret in hexadecimal, and times are in milliseconds since 1970.
    """

    user: str
    name: str
    digest: str = field(repr=False)
    created_ms: int
    #: None if it never expires.
    expires_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DropToken:
    """Remove a token of a user."""

    user: str
    name: str


@dataclass(frozen=True, slots=True)
class RecordTokenUse:
    """Record that a user logged in with a token on a day (in days since 1970).

    If the token was dropped, the command has no effect.
    """

    user: str
    name: str
    day: int


Command = (
    CreateUser
    | DropUser
    | SetPassword
    | Rehash
    | CreateRole
    | DropRole
    | GrantRole
    | RevokeRole
    | Grant
    | Revoke
    | CreateToken
    | DropToken
    | RecordTokenUse
)
_KINDS: dict[str, type[Command]] = {
    "create user": CreateUser,
    "drop user": DropUser,
    "set password": SetPassword,
    "rehash": Rehash,
    "create role": CreateRole,
    "drop role": DropRole,
    "grant role": GrantRole,
    "revoke role": RevokeRole,
    "grant": Grant,
    "revoke": Revoke,
    "create token": CreateToken,
    "drop token": DropToken,
    "record token use": RecordTokenUse,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def encode_command(command: Command) -> bytes:
    """Return the bytes of a command."""
    words = [_plain(getattr(command, f.name)) for f in fields(command)]
    return json.dumps([_NAMES[type(command)], *words], ensure_ascii=False).encode()


def decode_command(data: bytes) -> Command:
    """Parse the bytes of a command. Raises CorruptFile; NewerFormat for an unknown command."""
    try:
        name, *words = json.loads(data)
        if isinstance(name, str) and name not in _KINDS:
            raise NewerFormat("the log of the meta group", f"change of users {name!r}")
        kind = _KINDS[name]
        values = [_FORMS[f.type](word) for f, word in zip(fields(kind), words, strict=True)]
        return kind(*values)  # type: ignore[arg-type]
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptFile("log", 0, f"invalid user command: {error}") from error


def _plain(value: object) -> object:
    if isinstance(value, Grantee):
        return [value.kind.value, value.name]
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value.value if isinstance(value, Privilege) else value


def _text(word: object) -> str:
    if not isinstance(word, str):
        raise TypeError(f"{word!r} is not a string")
    return word


def _flag(word: object) -> bool:
    if not isinstance(word, bool):
        raise TypeError(f"{word!r} is not a boolean")
    return word


def _number(word: object) -> int:
    if not isinstance(word, int) or isinstance(word, bool):
        raise TypeError(f"{word!r} is not an integer")
    return word


def _list(word: object) -> list[object]:
    if not isinstance(word, list):
        raise TypeError(f"{word!r} is not a list")
    return word


def _grantee(word: object) -> Grantee:
    kind, name = _list(word)
    return Grantee(Kind(kind), _text(name))


#: The parsers of fields, by the field's type annotation.
_FORMS: dict[object, Callable[[object], object]] = {
    "str": _text,
    "bool": _flag,
    "int": _number,
    "int | None": lambda word: None if word is None else _number(word),
    "Grantee": _grantee,
    "tuple[str, ...]": lambda word: tuple(_text(part) for part in _list(word)),
    "tuple[Privilege, ...]": lambda word: tuple(Privilege(part) for part in _list(word)),
}
