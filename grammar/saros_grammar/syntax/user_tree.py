"""Statements about users, roles, privileges and API tokens; exported by `ast`. Pure data."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from saros_grammar.syntax.expression_tree import Expression, Literal, Parameter, PathExpression


class PrincipalKind(Enum):
    """The kinds of holders of privileges."""

    USER = "user"
    ROLE = "role"


@dataclass(frozen=True, slots=True)
class Principal:
    """A user or a role."""

    kind: PrincipalKind
    name: str


@dataclass(frozen=True, slots=True)
class CreateUser:
    """CREATE USER name 'password'."""

    name: str
    password: Literal | Parameter = field(repr=False)


@dataclass(frozen=True, slots=True)
class AlterUser:
    """ALTER USER name SET PASSWORD 'password'."""

    name: str
    password: Literal | Parameter = field(repr=False)


@dataclass(frozen=True, slots=True)
class CreateRole:
    """CREATE ROLE name."""

    name: str


@dataclass(frozen=True, slots=True)
class DropPrincipal:
    """DROP USER name; DROP ROLE name."""

    principal: Principal


@dataclass(frozen=True, slots=True)
class GrantRole:
    """GRANT ROLE role TO user."""

    role: str
    user: str


@dataclass(frozen=True, slots=True)
class RevokeRole:
    """REVOKE ROLE role FROM user."""

    role: str
    user: str


@dataclass(frozen=True, slots=True)
class Grant:
    """GRANT privileges ON paths TO USER | ROLE name [WITH GRANT OPTION]; privileges in upper case."""

    privileges: tuple[str, ...]
    paths: tuple[PathExpression, ...]
    to: Principal
    option: bool = False


@dataclass(frozen=True, slots=True)
class Revoke:
    """REVOKE privileges ON paths FROM USER | ROLE name."""

    privileges: tuple[str, ...]
    paths: tuple[PathExpression, ...]
    of: Principal


@dataclass(frozen=True, slots=True)
class ListUsers:
    """LIST USER [OF ROLE role]."""

    of_role: str | None = None


@dataclass(frozen=True, slots=True)
class ListRoles:
    """LIST ROLE [OF USER user]."""

    of_user: str | None = None


@dataclass(frozen=True, slots=True)
class ListPrivileges:
    """LIST PRIVILEGES OF USER | ROLE name."""

    of: Principal


@dataclass(frozen=True, slots=True)
class CreateToken:
    """CREATE TOKEN name [FOR USER user] [EXPIRES 'date' | IN duration]; `user` is by default the caller."""

    name: str
    user: str | None = None
    #: None: the token never expires.
    expires: Expression | None = None


@dataclass(frozen=True, slots=True)
class DropToken:
    """DROP TOKEN name [OF USER user]; `user` is by default the caller."""

    name: str
    user: str | None = None


@dataclass(frozen=True, slots=True)
class ShowTokens:
    """SHOW TOKENS [OF USER user]; without a user, all tokens that the caller may see."""

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
