"""Statements about users, roles, privileges and API tokens. `ast` exports the classes. Pure data."""

from __future__ import annotations

from enum import Enum

import msgspec

from saros_grammar.syntax.expression_tree import Expression, Literal, Parameter, PathExpression


class PrincipalKind(Enum):
    """The kinds of holders of privileges."""

    USER = "user"
    ROLE = "role"


class Principal(msgspec.Struct, frozen=True):
    """A user or a role."""

    kind: PrincipalKind
    name: str


class CreateUser(msgspec.Struct, frozen=True):
    """CREATE USER name 'password'."""

    name: str
    password: Literal | Parameter

    def __repr__(self) -> str:  # without the password
        return f"CreateUser(name={self.name!r})"


class AlterUser(msgspec.Struct, frozen=True):
    """ALTER USER name SET PASSWORD 'password'."""

    name: str
    password: Literal | Parameter

    def __repr__(self) -> str:  # without the password
        return f"AlterUser(name={self.name!r})"


class CreateRole(msgspec.Struct, frozen=True):
    """CREATE ROLE name."""

    name: str


class DropPrincipal(msgspec.Struct, frozen=True):
    """DROP USER name; DROP ROLE name."""

    principal: Principal


class GrantRole(msgspec.Struct, frozen=True):
    """GRANT ROLE role TO user."""

    role: str
    user: str


class RevokeRole(msgspec.Struct, frozen=True):
    """REVOKE ROLE role FROM user."""

    role: str
    user: str


class Grant(msgspec.Struct, frozen=True):
    """GRANT privileges ON paths TO USER | ROLE name [WITH GRANT OPTION]. Privileges are in upper case."""

    privileges: tuple[str, ...]
    paths: tuple[PathExpression, ...]
    to: Principal
    option: bool = False


class Revoke(msgspec.Struct, frozen=True):
    """REVOKE privileges ON paths FROM USER | ROLE name."""

    privileges: tuple[str, ...]
    paths: tuple[PathExpression, ...]
    of: Principal


class ListUsers(msgspec.Struct, frozen=True):
    """LIST USER [OF ROLE role]."""

    of_role: str | None = None


class ListRoles(msgspec.Struct, frozen=True):
    """LIST ROLE [OF USER user]."""

    of_user: str | None = None


class ListPrivileges(msgspec.Struct, frozen=True):
    """LIST PRIVILEGES OF USER | ROLE name."""

    of: Principal


class CreateToken(msgspec.Struct, frozen=True):
    """CREATE TOKEN name [FOR USER user] [EXPIRES 'date' | IN duration]. If `user` is None, it is the caller."""

    name: str
    user: str | None = None
    #: None: the token never expires.
    expires: Expression | None = None


class DropToken(msgspec.Struct, frozen=True):
    """DROP TOKEN name [OF USER user]. If `user` is None, it is the caller."""

    name: str
    user: str | None = None


class ShowTokens(msgspec.Struct, frozen=True):
    """SHOW TOKENS [OF USER user]. Without a user, it shows all tokens that the caller may see."""

    of_user: str | None = None


UserStatement = (
    CreateUser
    | AlterUser
    | CreateRole
    | DropPrincipal
    | GrantRole
    | RevokeRole
    | Grant
    | Revoke
    | ListUsers
    | ListRoles
    | ListPrivileges
    | CreateToken
    | DropToken
    | ShowTokens
)
