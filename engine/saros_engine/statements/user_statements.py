"""Statements that change the users, roles, privileges and tokens in a `Directory`, or list them.

`authorization` has already checked the session's privileges; lists contain only entries that the session may see.
Passwords are replaced by their hashes here, so no other module gets them. The secret of a new token appears only in the
result of CREATE TOKEN. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

import msgspec

from saros_cluster.users import commands
from saros_cluster.users.commands import Command, Grantee, Kind
from saros_cluster.users.directory import Directory
from saros_cluster.users.effective_privileges import Granted
from saros_cluster.users.privileges import EVERYWHERE, Privilege, parse_area, parse_privileges
from saros_cluster.users.tokens import Token
from saros_cluster.users.users import Users
from saros_engine.base.access import Access
from saros_engine.base.errors import SemanticError
from saros_engine.base.row_set import RowSet
from saros_engine.expressions.time_filter import TimeContext, constant_time
from saros_engine.plan.plan import Field
from saros_grammar.syntax import ast
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType, Scalar
from saros_storage.base.write_request import WriteRequest

_TEXT = DataType.TEXT
_NO_PERMISSION = 803
_PRIVILEGE_FIELDS = (
    Field("Role", _TEXT),
    Field("Path", _TEXT),
    Field("Privileges", _TEXT),
    Field("GrantOption", DataType.BOOLEAN),
)
_NEW_TOKEN_FIELDS = (
    Field("User", _TEXT),
    Field("Token", _TEXT),
    Field("Secret", _TEXT),
    Field("Expires", DataType.TIMESTAMP),
)
_TOKEN_FIELDS = (
    Field("User", _TEXT),
    Field("Token", _TEXT),
    Field("Created", DataType.TIMESTAMP),
    Field("Expires", DataType.TIMESTAMP),
    Field("LastUsed", DataType.DATE),
)
_MILLISECONDS = 1_000
_EPOCH = date(1970, 1, 1)


class UserRequest(msgspec.Struct, frozen=True):
    """The caller of a statement about users."""

    access: Access
    write: WriteRequest
    moment: TimeContext


@dataclass(frozen=True, slots=True)
class Secret:
    """The secret of a new token, and its hash; only the hash is stored."""

    text: str = field(repr=False)
    digest: str = field(repr=False)


class UserStatements:
    """Runs the statements about users. Thread-safe."""

    def __init__(
        self, directory: Directory, hash_password: Callable[[str, str], str], new_secret: Callable[[], Secret]
    ) -> None:
        """`hash_password(user, password)` returns the hash; it raises UserMistake if the password is too weak."""
        self.directory = directory
        self._hash_password = hash_password
        self._new_secret = new_secret

    def users(self) -> Users:
        """Return the users that this node knows."""
        return self.directory.users()

    def run(self, statement: ast.UserStatement, asked: UserRequest) -> RowSet | None:
        """Execute a statement; return the rows of LIST, SHOW or CREATE TOKEN, or None for other statements.

        Raises UserMistake, SemanticError, StorageError.
        """
        users, access = self.directory.newest(), asked.access
        match statement:
            case ast.ListUsers(of_role):
                return _list_users(users, of_role, access)
            case ast.ListRoles(of_user):
                return _list_roles(users, of_user, access)
            case ast.ListPrivileges(of):
                return _list_privileges(users, of)
            case ast.ShowTokens(of_user):
                return _show_tokens(users, of_user, asked)
            case ast.CreateToken():
                return self._create_token(statement, asked)
            case ast.DropToken(name, user):
                self.directory.change(commands.DropToken(_owner(user, access), name), asked.write.deadline_ns)
                return None
            case _:
                _check_not_administrator(statement, users)
                self.directory.change(self._command(statement, users), asked.write.deadline_ns)
                return None

    def _create_token(self, create: ast.CreateToken, asked: UserRequest) -> RowSet:
        """Create a token; return the row of the result, which contains the secret."""
        moment, user = asked.moment, _owner(create.user, asked.access)
        expires = None if create.expires is None else constant_time(create.expires, moment)
        if expires is not None and expires <= moment.now:
            raise SemanticError(f"the token would have expired already: {create.expires} is not in the future")
        secret = self._new_secret()
        created_ms, expires_ms = _milliseconds(moment.now, moment), _milliseconds(expires, moment)
        assert created_ms is not None
        self.directory.change(
            commands.CreateToken(user, create.name, secret.digest, created_ms, expires_ms), asked.write.deadline_ns
        )
        return RowSet(_NEW_TOKEN_FIELDS, [(user, create.name, secret.text, _ticks(expires_ms, moment))])

    def _command(self, statement: ast.UserStatement, users: Users) -> Command:
        match statement:
            case ast.CreateUser(name, password):
                return commands.CreateUser(name, self._hash_password(name, _text(password)))
            case ast.AlterUser(name, password):
                users.user(name)
                return commands.SetPassword(name, self._hash_password(name, _text(password)))
            case ast.CreateRole(name):
                return commands.CreateRole(name)
            case ast.DropPrincipal(ast.Principal(ast.PrincipalKind.USER, name)):
                return commands.DropUser(name)
            case ast.DropPrincipal(ast.Principal(_, name)):
                return commands.DropRole(name)
            case ast.GrantRole(role, user):
                return commands.GrantRole(role, user)
            case ast.RevokeRole(role, user):
                return commands.RevokeRole(role, user)
            case ast.Grant(names, paths, to, option):
                return commands.Grant(parse_privileges(names), _areas(paths), _grantee(to), option)
            case ast.Revoke(names, paths, of):
                return commands.Revoke(parse_privileges(names), _areas(paths), _grantee(of))
            case _:
                raise AssertionError(type(statement))


def _owner(user: str | None, access: Access) -> str:
    """Return the user to whom a statement about tokens refers. Raises SemanticError if the user is unknown."""
    owner = access.user if user is None else user
    if not owner:
        raise SemanticError("this session has no user: name the user of the token, as in FOR USER root or OF USER root")
    return owner


def _milliseconds(ticks: int | None, moment: TimeContext) -> int | None:
    return None if ticks is None else ticks * _MILLISECONDS // moment.unit.value


def _ticks(milliseconds: int | None, moment: TimeContext) -> int | None:
    return None if milliseconds is None else milliseconds * moment.unit.value // _MILLISECONDS


def _check_not_administrator(statement: ast.UserStatement, users: Users) -> None:
    """Raise UserMistake if the statement grants to, or revokes from, an administrator."""
    match statement:
        case (
            ast.GrantRole(_, name)
            | ast.RevokeRole(_, name)
            | ast.Grant(to=ast.Principal(ast.PrincipalKind.USER, name))
            | ast.Revoke(of=ast.Principal(ast.PrincipalKind.USER, name))
        ):
            user = users.users.get(name)
            if user is not None and user.administrator:
                message = f"{name} is an administrator and has all privileges: none can be granted or revoked"
                raise UserMistake(message, code=_NO_PERMISSION)


def _text(password: ast.Literal | ast.Parameter) -> str:
    if not isinstance(password, ast.Literal) or not isinstance(password.value, str):
        raise SemanticError("a password must be a text in quotes")
    return password.value


def _areas(paths: Iterable[ast.PathExpression]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(parse_area(str(path)) for path in paths))


def _grantee(principal: ast.Principal) -> Grantee:
    return Grantee(Kind(principal.kind.value), principal.name)


# ---------------------------------------------------------------------------------------------- lists


def _list_users(users: Users, of_role: str | None, access: Access) -> RowSet:
    if of_role is not None:
        users.role(of_role)
        return _names("User", [user.name for user in users.members(of_role)])
    everyone = access.may(Privilege.MANAGE_USER)
    return _names("User", [name for name in sorted(users.users) if everyone or name == access.user])


def _list_roles(users: Users, of_user: str | None, access: Access) -> RowSet:
    if of_user is not None:
        return _names("Role", users.user(of_user).roles)
    if access.may(Privilege.MANAGE_ROLE):
        return _names("Role", sorted(users.roles))
    return _names("Role", users.user(access.user).roles)


def _names(title: str, names: Iterable[str]) -> RowSet:
    return RowSet((Field(title, _TEXT),), [(name,) for name in names])


def _list_privileges(users: Users, of: ast.Principal) -> RowSet:
    """Return the rows of LIST PRIVILEGES.

    The rows of a role are its privileges. The rows of a user are the privileges granted to the user, with an empty role
    name, followed by the privileges of each of the user's roles.
    """
    if of.kind is ast.PrincipalKind.ROLE:
        return RowSet(_PRIVILEGE_FIELDS, _rows(of.name, users.role(of.name).grants))
    user = users.user(of.name)
    own = [Granted(p, EVERYWHERE, option=True) for p in Privilege] if user.administrator else user.grants
    rows = _rows("", own)
    for role in user.roles:
        rows += _rows(role, users.role(role).grants)
    return RowSet(_PRIVILEGE_FIELDS, rows)


def _show_tokens(users: Users, of_user: str | None, asked: UserRequest) -> RowSet:
    access = asked.access
    if of_user is not None:
        tokens = users.tokens_of(of_user)
    elif access.may(Privilege.MANAGE_USER):
        tokens = sorted(users.tokens.values(), key=lambda token: (token.user, token.name))
    else:
        tokens = users.tokens_of(access.user)
    return RowSet(_TOKEN_FIELDS, [_token_row(token, asked.moment) for token in tokens])


def _token_row(token: Token, moment: TimeContext) -> Sequence[Scalar]:
    created, expires = _ticks(token.created_ms, moment), _ticks(token.expires_ms, moment)
    return (
        token.user,
        token.name,
        created,
        expires,
        None if token.last_used_day is None else _date(token.last_used_day),
    )


def _date(day: int) -> int:
    """Return the DATE (as YYYYMMDD) of a number of days since 1970."""
    found = _EPOCH + timedelta(days=day)
    return found.year * 10_000 + found.month * 100 + found.day


def _rows(role: str, grants: Iterable[Granted]) -> list[Sequence[Scalar]]:
    return [(role, granted.area, granted.privilege.value, granted.option) for granted in grants]
