"""CREATE USER to LIST PRIVILEGES: statements about users as changes of a `Directory`, and its state as rows.

Whether the session may is decided before (`authorization`); lists are cut to what it may see. Passwords become hashes
here, by the function that was given, and go no further. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from saros_cluster.users import commands
from saros_cluster.users.commands import Command, Grantee, Kind
from saros_cluster.users.directory import Directory
from saros_cluster.users.effective_privileges import Granted
from saros_cluster.users.privileges import EVERYWHERE, Privilege, parse_area, parse_privileges
from saros_cluster.users.users import Users
from saros_engine.base.access import Access
from saros_engine.base.errors import SemanticError
from saros_engine.base.row_set import RowSet
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


class UserStatements:
    """See the module. `hash_password(user, password)` raises UserMistake for a password that is too weak."""

    def __init__(self, directory: Directory, hash_password: Callable[[str, str], str]) -> None:
        self.directory = directory
        self._hash_password = hash_password

    def users(self) -> Users:
        """The state as it is known here."""
        return self.directory.users()

    def run(self, statement: ast.UserStatement, access: Access, request: WriteRequest) -> RowSet | None:
        """Carry out a statement; rows of LIST, None of others. Raises UserMistake, SemanticError, StorageError."""
        users = self.directory.newest()
        match statement:
            case ast.ListUsers(of_role):
                return _list_users(users, of_role, access)
            case ast.ListRoles(of_user):
                return _list_roles(users, of_user, access)
            case ast.ListPrivileges(of):
                return _list_privileges(users, of)
            case _:
                _check_not_administrator(statement, users)
                self.directory.change(self._command(statement, users), request.deadline_ns)
                return None

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


def _check_not_administrator(statement: ast.UserStatement, users: Users) -> None:
    """Raise UserMistake for what would be granted to, or revoked from, a user who may everything."""
    match statement:
        case (
            ast.GrantRole(_, name)
            | ast.RevokeRole(_, name)
            | ast.Grant(to=ast.Principal(ast.PrincipalKind.USER, name))
            | ast.Revoke(of=ast.Principal(ast.PrincipalKind.USER, name))
        ):
            user = users.users.get(name)
            if user is not None and user.administrator:
                message = f"{name} is an administrator, who may everything: nothing is granted to one, nor revoked"
                raise UserMistake(message, code=_NO_PERMISSION)


def _text(password: ast.Literal | ast.Parameter) -> str:
    if not isinstance(password, ast.Literal) or not isinstance(password.value, str):
        raise SemanticError("a password is a text")
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
    """Own privileges first, then those of each role, with the role's name in front."""
    if of.kind is ast.PrincipalKind.ROLE:
        return RowSet(_PRIVILEGE_FIELDS, _rows("", users.role(of.name).grants))
    user = users.user(of.name)
    own = [Granted(p, EVERYWHERE, option=True) for p in Privilege] if user.administrator else user.grants
    rows = _rows("", own)
    for role in user.roles:
        rows += _rows(role, users.role(role).grants)
    return RowSet(_PRIVILEGE_FIELDS, rows)


def _rows(role: str, grants: Iterable[Granted]) -> list[Sequence[Scalar]]:
    return [(role, granted.area, granted.privilege.value, granted.option) for granted in grants]
