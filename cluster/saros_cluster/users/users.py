"""The state of users, roles, privileges and API tokens, an immutable value. Each change returns the next state.

    Users --apply(command)--> Users         or UserMistake, and nothing changed

Administrators are users with a flag. No name has a special meaning. The last administrator cannot be dropped. A user's
`version` rises with every change of the user or of one of the user's roles. A session compares the version with the one
that it knows, and uses the new rights if the version has risen. `password_version` is the version at which the password
was set. A session ends if it began with an older `password_version`. A token belongs to a user and is removed with the
user. A new password does not revoke it.

All checks of the state are made here, when a change is applied. Copies that apply the same changes therefore agree. The
caller checks the privileges of the user that requests a change. Pure: any thread.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from saros_cluster.users.commands import (
    Command,
    CreateRole,
    CreateToken,
    CreateUser,
    DropRole,
    DropToken,
    DropUser,
    Grant,
    Grantee,
    GrantRole,
    Kind,
    RecordTokenUse,
    Rehash,
    Revoke,
    RevokeRole,
    SetPassword,
)
from saros_cluster.users.effective_privileges import Granted, Rights
from saros_cluster.users.privileges import Privilege, check_areas, covers, parse_area
from saros_cluster.users.tokens import Token, tokens_of
from saros_storage.base.errors import UserMistake

#: The limit of the number of users, and of the number of roles: more would slow down every look-up.
PRINCIPALS_MAX = 10_000
#: The limit of grants to one user or role.
GRANTS_MAX = 1_000
#: The limits of the tokens of one user, and of all users. Tokens are written with every change of the state.
TOKENS_OF_USER_MAX = 100
TOKENS_MAX = 10_000
_NAME = re.compile(r"[\w.@+-]{1,64}")
#: A prefix of names that is reserved for Saros.
_RESERVED = "__"
_NO_USER, _USER_EXISTS, _HAS_ROLE, _HAS_NO_ROLE, _NO_ROLE, _ROLE_EXISTS = 804, 805, 806, 807, 808, 809
_NOTHING_REVOKED = 811
_NO_TOKEN, _TOKEN_EXISTS = 2042, 2043


@dataclass(frozen=True, slots=True)
class User:
    """A user that may log in."""

    name: str
    #: The hash of the password with its parameters: a PHC string.
    hash: str = field(repr=False)
    administrator: bool = False
    #: True if a login with the password may only set a new password.
    must_change: bool = False
    roles: tuple[str, ...] = ()
    grants: tuple[Granted, ...] = ()
    version: int = 0
    password_version: int = 0


@dataclass(frozen=True, slots=True)
class Role:
    """A named set of privileges."""

    name: str
    grants: tuple[Granted, ...] = ()


@dataclass(frozen=True, slots=True)
class Users:
    """All users, roles, grants and tokens."""

    users: Mapping[str, User] = field(default_factory=dict)
    roles: Mapping[str, Role] = field(default_factory=dict)
    #: Increased by every change.
    version: int = 0
    #: The tokens, keyed by their digests.
    tokens: Mapping[str, Token] = field(default_factory=dict)

    def apply(self, command: Command) -> Users:
        """Return the state after a change. Raises UserMistake."""
        match command:
            case CreateUser():
                return self._create_user(command)
            case DropUser(name):
                return self._drop_user(self.user(name))
            case SetPassword(name, hash_, must_change):
                now = self.version + 1
                user = self.user(name)
                return self._with(replace(user, hash=hash_, must_change=must_change, password_version=now))
            case Rehash(name, before, hash_):
                user = self.user(name)
                return self._with(replace(user, hash=hash_)) if user.hash == before else self
            case CreateRole(name):
                return self._create_role(name)
            case DropRole(name):
                return self._drop_role(self.role(name))
            case GrantRole(role, name):
                return self._grant_role(self.role(role), self.user(name))
            case RevokeRole(role, name):
                return self._revoke_role(self.role(role), self.user(name))
            case Grant():
                return self._grant(command)
            case Revoke():
                return self._revoke(command)
            case CreateToken():
                return self._create_token(command)
            case DropToken(name, token):
                return self._drop_token(self.token(name, token))
            case RecordTokenUse():
                return self._record_token_use(command)

    # ------------------------------------------------------------------ queries

    def user(self, name: str) -> User:
        """Return a user by name. Raises UserMistake 804."""
        found = self.users.get(name)
        if found is None:
            raise UserMistake(f"user {name} does not exist", code=_NO_USER)
        return found

    def role(self, name: str) -> Role:
        """Return a role by name. Raises UserMistake 808."""
        found = self.roles.get(name)
        if found is None:
            raise UserMistake(f"role {name} does not exist", code=_NO_ROLE)
        return found

    def token(self, user: str, name: str) -> Token:
        """Return a user's token by its name. Raises UserMistake 804, 2042."""
        found = next((token for token in self.tokens_of(user) if token.name == name), None)
        if found is None:
            raise UserMistake(f"user {user} has no token {name}; see SHOW TOKENS", code=_NO_TOKEN)
        return found

    def tokens_of(self, user: str) -> list[Token]:
        """Return a user's tokens, sorted by name. Raises UserMistake 804."""
        return tokens_of(self.tokens, self.user(user).name)

    def members(self, role: str) -> list[User]:
        """Return the users that have a role, sorted by name."""
        return [self.users[name] for name in sorted(self.users) if role in self.users[name].roles]

    def rights(self, name: str) -> Rights:
        """Return the effective privileges of a user, including those of roles. Raises UserMistake 804."""
        user = self.user(name)
        grants = [*user.grants, *(granted for role in user.roles for granted in self.role(role).grants)]
        return Rights(grants, administrator=user.administrator)

    # ------------------------------------------------------------------ users and roles

    def _create_user(self, command: CreateUser) -> Users:
        _check_name(command.name)
        if command.name in self.users:
            raise UserMistake(f"user {command.name} already exists", code=_USER_EXISTS)
        _check_room(len(self.users), PRINCIPALS_MAX, "users")
        user = User(command.name, command.hash, command.administrator, command.must_change)
        return self._with(replace(user, password_version=self.version + 1))

    def _drop_user(self, user: User) -> Users:
        others = {name: other for name, other in self.users.items() if name != user.name}
        if user.administrator and not any(other.administrator for other in others.values()):
            raise UserMistake(f"{user.name} is the only administrator and cannot be dropped; create another one first")
        tokens = {digest: token for digest, token in self.tokens.items() if token.user != user.name}
        return replace(self, users=others, tokens=tokens, version=self.version + 1)

    def _create_role(self, name: str) -> Users:
        _check_name(name)
        if name in self.roles:
            raise UserMistake(f"role {name} already exists", code=_ROLE_EXISTS)
        _check_room(len(self.roles), PRINCIPALS_MAX, "roles")
        return self._with(roles=[Role(name)])

    def _drop_role(self, role: Role) -> Users:
        members = [replace(u, roles=tuple(r for r in u.roles if r != role.name)) for u in self.members(role.name)]
        others = {name: other for name, other in self.roles.items() if name != role.name}
        return replace(self._with(*members), roles=others)

    def _grant_role(self, role: Role, user: User) -> Users:
        if role.name in user.roles:
            raise UserMistake(f"{user.name} already has role {role.name}", code=_HAS_ROLE)
        return self._with(replace(user, roles=tuple(sorted((*user.roles, role.name)))))

    def _revoke_role(self, role: Role, user: User) -> Users:
        if role.name not in user.roles:
            raise UserMistake(f"{user.name} has no role {role.name}", code=_HAS_NO_ROLE)
        return self._with(replace(user, roles=tuple(name for name in user.roles if name != role.name)))

    # ------------------------------------------------------------------ privileges

    def _grant(self, command: Grant) -> Users:
        check_areas(command.privileges, command.areas)
        areas = [parse_area(area) for area in command.areas]
        known = {(granted.privilege, granted.area): granted for granted in self._grants(command.to)}
        for privilege in command.privileges:
            for area in areas:
                before = known.get((privilege, area))
                option = command.option or (before is not None and before.option)
                known[privilege, area] = Granted(privilege, area, option)
        _check_room(len(known) - 1, GRANTS_MAX, f"grants of {command.to}")
        return self._with_grants(command.to, known.values())

    def _revoke(self, command: Revoke) -> Users:
        check_areas(command.privileges, command.areas)
        areas = [parse_area(area) for area in command.areas]
        grants = self._grants(command.of)
        kept = [g for g in grants if g.privilege not in command.privileges or not any(covers(a, g.area) for a in areas)]
        if len(kept) == len(grants):
            names = ", ".join(p.value for p in command.privileges)
            message = (
                f"{command.of} was not granted {names} on {', '.join(areas)} or below; revoke a grant on a wider path"
                f" or through a role where it was made (see LIST PRIVILEGES OF {command.of})"
            )
            raise UserMistake(message, code=_NOTHING_REVOKED)
        return self._with_grants(command.of, kept)

    def _grants(self, holder: Grantee) -> tuple[Granted, ...]:
        return self.user(holder.name).grants if holder.kind is Kind.USER else self.role(holder.name).grants

    def _with_grants(self, holder: Grantee, grants: Iterable[Granted]) -> Users:
        ordered = tuple(sorted(grants, key=lambda g: (g.area, list(Privilege).index(g.privilege))))
        if holder.kind is Kind.USER:
            return self._with(replace(self.user(holder.name), grants=ordered))
        return self._with(*self.members(holder.name), roles=[replace(self.role(holder.name), grants=ordered)])

    def _with(self, *users: User, roles: Iterable[Role] = ()) -> Users:
        """Return the state with these roles and these users, and raise the version of each of these users."""
        version = self.version + 1
        changed = {user.name: replace(user, version=version) for user in users}
        return replace(
            self,
            users={**self.users, **changed},
            roles={**self.roles, **{role.name: role for role in roles}},
            version=version,
        )

    # ------------------------------------------------------------------ tokens

    def _create_token(self, command: CreateToken) -> Users:
        _check_name(command.name)
        own = self.tokens_of(command.user)
        if command.digest in self.tokens or any(token.name == command.name for token in own):
            message = f"user {command.user} already has a token {command.name}; drop it or choose another name"
            raise UserMistake(message, code=_TOKEN_EXISTS)
        _check_room(len(own), TOKENS_OF_USER_MAX, f"tokens of user {command.user}")
        _check_room(len(self.tokens), TOKENS_MAX, "tokens")
        return self._with_token(
            Token(command.user, command.name, command.digest, command.created_ms, command.expires_ms)
        )

    def _drop_token(self, dropped: Token) -> Users:
        tokens = {digest: token for digest, token in self.tokens.items() if token is not dropped}
        return replace(self, tokens=tokens, version=self.version + 1)

    def _record_token_use(self, command: RecordTokenUse) -> Users:
        own = tokens_of(self.tokens, command.user)
        used = next((token for token in own if token.name == command.name), None)
        if used is None or (used.last_used_day is not None and used.last_used_day >= command.day):
            return self
        return self._with_token(replace(used, last_used_day=command.day))

    def _with_token(self, token: Token) -> Users:
        return replace(self, tokens={**self.tokens, token.digest: token}, version=self.version + 1)

    # ------------------------------------------------------------------ encoding

    def dump(self) -> dict[str, object]:
        """Return JSON values."""
        return {
            "version": self.version,
            "users": [
                {
                    "name": user.name,
                    "hash": user.hash,
                    "administrator": user.administrator,
                    "must_change": user.must_change,
                    "roles": list(user.roles),
                    "grants": _dump_grants(user.grants),
                    "version": user.version,
                    "password_version": user.password_version,
                }
                for user in self.users.values()
            ],
            "roles": [{"name": role.name, "grants": _dump_grants(role.grants)} for role in self.roles.values()],
            "tokens": [token.to_json() for token in self.tokens.values()],
        }

    @staticmethod
    def load(words: Mapping[str, object]) -> Users:
        """Parse the values of `dump`. Raises ValueError, TypeError, KeyError."""
        users = [_load_user(item) for item in _items(words["users"])]
        roles = [Role(str(item["name"]), _load_grants(item["grants"])) for item in _items(words["roles"])]
        named = {role.name: role for role in roles}
        for user in users:
            if not named.keys() >= set(user.roles):
                raise ValueError(f"user {user.name} has a role that does not exist")
        tokens = [Token.from_json(item) for item in _list(words.get("tokens", []))]  # absent in earlier versions
        by_name = {user.name: user for user in users}
        if not by_name.keys() >= {token.user for token in tokens}:
            raise ValueError("a token belongs to a user that does not exist")
        return Users(by_name, named, _number(words["version"]), {token.digest: token for token in tokens})


def _check_name(name: str) -> None:
    if _NAME.fullmatch(name) is None or unicodedata.normalize("NFKC", name) != name or name.startswith(_RESERVED):
        raise UserMistake(
            f"{name!r} is not a valid name for a user, a role or a token: it has 1 to 64 letters, digits, or _ . @ + -,"
            f" and does not begin with {_RESERVED}"
        )


def _check_room(count: int, limit: int, what: str) -> None:
    if count >= limit:
        raise UserMistake(f"there are {count} {what} already; at most {limit} are allowed")


def _dump_grants(grants: Iterable[Granted]) -> list[list[object]]:
    return [[granted.privilege.value, granted.area, granted.option] for granted in grants]


def _load_grants(items: object) -> tuple[Granted, ...]:
    if not isinstance(items, list):
        raise TypeError("expected a list of grants")
    return tuple(
        Granted(Privilege(privilege), parse_area(str(area)), option is True) for privilege, area, option in items
    )


def _load_user(item: Mapping[str, object]) -> User:
    roles = item["roles"]
    if not isinstance(roles, list):
        raise TypeError("expected a list of roles")
    return User(
        str(item["name"]),
        str(item["hash"]),
        item["administrator"] is True,
        item["must_change"] is True,
        tuple(str(role) for role in roles),
        _load_grants(item["grants"]),
        _number(item["version"]),
        _number(item["password_version"]),
    )


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError("expected a list")
    return value


def _items(value: object) -> list[Mapping[str, object]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise TypeError("expected a list of objects")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is not an integer")
    return value
