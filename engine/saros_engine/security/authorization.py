"""The only module that decides whether a statement may run: it has a rule for every class of statement.

    statement + Access --rule--> nothing, or NoPermission
    batch of columns   ---------^
    plan of a SELECT   ---------^     the series that it reads

A rule checks a statement and the names in it. SELECT, SHOW and COUNT see only the part of the schema that the user may
read (`schema_for`), so their rules check only paths without wildcards; the plan of a SELECT is checked again after it
is made. Deletions need the privilege on all paths that their pattern can match, whether they exist or not. So the
result of the check reveals nothing about the schema. The check also covers series that are created before the deletion
takes effect.

A rule also names the statement's event in the audit trail. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from saros_cluster.users.privileges import Privilege, parse_area, parse_privileges
from saros_cluster.users.users import Users
from saros_engine.analysis.scope import paths_of
from saros_engine.base.access import Access, NoPermission, PasswordMustChange
from saros_engine.base.authorized_schema import ReadableSchema, SchemaReader
from saros_engine.base.database import Database, wait_for_schema
from saros_engine.base.errors import StatementNotAllowed
from saros_engine.base.session_context import SessionContext
from saros_engine.catalog.views import (
    View,
    ViewedSchema,
    source_of_alias,
    sources_of_aliases,
    texts_of_views,
)
from saros_engine.plan.plan import Node, scan_requests
from saros_engine.planning.schema_patterns import patterns_of
from saros_engine.security.information_schema import TABLES
from saros_grammar.syntax import ast
from saros_storage.base.paths import join_nodes, split_path, split_series
from saros_storage.schema import DeviceSchema


class AuthorizationRequest(msgspec.Struct, frozen=True):
    """The context in which a rule checks its statement."""

    access: Access
    store: Database
    users: Users
    #: The time at which the whole statement must stop waiting, or None if each step has its usual limit.
    deadline_ns: int | None = None


class Rule(msgspec.Struct, frozen=True):
    """`check` raises NoPermission; `event` is the statement's event in the audit trail, or None."""

    check: Callable[[Any, AuthorizationRequest], None]
    event: str | None = None


def authorize(statement: ast.Statement, asked: AuthorizationRequest) -> None:
    """Raise NoPermission or PasswordMustChange unless the statement may run."""
    access = asked.access
    if access.by_token and _sets_own_credentials(statement, access.user):
        raise NoPermission("a login with the password")
    if access.unrestricted:
        return
    if access.must_change and not (isinstance(statement, ast.AlterUser) and statement.name == access.user):
        raise PasswordMustChange(access.user)
    RULES[type(statement)].check(statement, asked)


def _sets_own_credentials(statement: ast.Statement, user: str) -> bool:
    """Return whether a statement sets a password or creates a token of `user`.

    A login by token may not do this, because the holder of a stolen token would keep access after the token is dropped.
    """
    match statement:
        case ast.AlterUser(name):
            return name == user
        case ast.CreateToken(_, owner):
            return owner in (None, user)
        case _:
            return False


def changes(statement: ast.Statement) -> bool:
    """Return whether a statement changes data or schema; changes of users, privileges or nodes do not count."""
    if isinstance(statement, ast.Select):
        return statement.into is not None
    return isinstance(statement, ast.Insert) or RULES[type(statement)].event in _CHANGES


def check_session(statement: ast.Statement, session: SessionContext) -> None:
    """Raise StatementNotAllowed for a statement that the session does not accept."""
    if session.read_only and not only_reads(statement):
        raise StatementNotAllowed("only statements that read are allowed here")
    if session.shared and isinstance(statement, ast.SetTimeZone | ast.SetPartialResults):
        raise StatementNotAllowed("settings of this session cannot be changed: other clients share it")


def only_reads(statement: ast.Statement) -> bool:
    """Return whether a statement changes nothing: no data, no schema, no users, no settings, no running query."""
    if isinstance(statement, ast.Explain):
        return only_reads(statement.statement)
    if isinstance(statement, ast.Select):
        return statement.into is None
    lists = ast.ListUsers | ast.ListRoles | ast.ListPrivileges | ast.ShowTokens
    return isinstance(statement, ast.Show | ast.Count | lists)


def leaves_database_alone(statement: ast.Statement) -> bool:
    """Return whether a statement only reads, or only affects sessions, queries and caches."""
    passing = ast.SetTimeZone | ast.SetPartialResults | ast.SetSqlDialect | ast.KillQuery | ast.ClearCache
    return only_reads(statement) or isinstance(statement, passing | ast.NotSupported)


def _require_own_password(access: Access) -> None:
    """Raise PasswordMustChange if the user has not yet replaced a password that was set by another user."""
    if access.must_change:
        raise PasswordMustChange(access.user)


def authorize_write(device: str, measurements: Sequence[str], asked: AuthorizationRequest) -> None:
    """Raise NoPermission unless the user may write to a device's measurements, which may be given by their aliases."""
    access, store = asked.access, asked.store
    if access.unrestricted:
        return
    _require_own_password(access)
    path = join_nodes(split_path(device))
    known = store.schema.device(path)
    if known is not None and known.series.keys() >= set(measurements) and access.may_below(Privilege.WRITE_DATA, path):
        return  # the fast path for the common case
    if _missing(known, measurements):
        wait_for_schema(store, [path], asked.deadline_ns)
        known = store.schema.device(path)
    sources = sources_of_aliases(store.schema, path, measurements)
    created = [name for name in _missing(known, measurements) if name not in sources]
    series = (sources.get(name) or f"{path}.{_own_name(known, name)}" for name in measurements)
    access.require(Privilege.WRITE_DATA, series)
    access.require(Privilege.WRITE_SCHEMA, (f"{path}.{name}" for name in created))
    if known is None and created:
        _require_database(path, asked)


def authorize_backup(access: Access) -> None:
    """Raise NoPermission or PasswordMustChange unless the whole database may be copied."""
    _require_own_password(access)
    for privilege in (Privilege.MAINTAIN, Privilege.READ_DATA, Privilege.READ_SCHEMA):
        access.require(privilege)


def authorize_load(access: Access) -> None:
    """Raise NoPermission or PasswordMustChange unless files may be loaded."""
    _require_own_password(access)
    access.require(Privilege.MAINTAIN)
    access.require(Privilege.MANAGE_DATABASE)
    access.require_all(Privilege.WRITE_DATA, ["root.**"])
    access.require_all(Privilege.WRITE_SCHEMA, ["root.**"])


def authorize_any_write(access: Access) -> None:
    """Raise NoPermission or PasswordMustChange unless there is a series to which the user may write."""
    _require_own_password(access)
    if not access.rights.sees(Privilege.WRITE_DATA, "root"):
        raise NoPermission(Privilege.WRITE_DATA.value)


def authorize_audit(access: Access) -> None:
    """Raise NoPermission or PasswordMustChange unless the audit trail, which has all users' statements, may be read."""
    _require_own_password(access)
    if not access.rights.administrator:
        raise NoPermission("an administrator")


def sees_statements_of(access: Access, user: str) -> bool:
    """Return whether the statements of a user may be seen. Raises PasswordMustChange."""
    _require_own_password(access)
    return user == access.user or access.may(Privilege.MAINTAIN)


def may_send(access: Access, device: str) -> bool:
    """Return whether a sender of this user may send the points and the schema of a device."""
    pattern = f"{device}.**"
    return access.rights.may_all(Privilege.WRITE_DATA, pattern) and access.rights.may_all(
        Privilege.WRITE_SCHEMA, pattern
    )


def authorize_plan(plan: Node, access: Access) -> None:
    """Raise NoPermission if a plan reads a series that the user may not read. Planning should have prevented this."""
    if not access.unrestricted:
        access.require(Privilege.READ_DATA, series_read(plan))


def schema_for(access: Access, store: Database, privilege: Privilege) -> SchemaReader:
    """Return the part of the schema for which the user has the privilege; views appear as series."""
    texts = texts_of_views(store.schema.catalogue)
    if access.unrestricted:
        return ViewedSchema(store.schema, texts, lambda _: True) if texts else store.schema
    readable = ReadableSchema(store.schema, access.rights, privilege)
    return ViewedSchema(readable, texts, lambda path: access.may(privilege, path)) if texts else readable


def authorize_views(views: Sequence[View], asked: AuthorizationRequest) -> None:
    """Raise NoPermission unless the views may be created."""
    if asked.access.unrestricted:
        return
    asked.access.require(Privilege.WRITE_SCHEMA, [view.path for view in views])
    for view in views:
        _require_database(split_series(view.path)[0], asked)


def series_read(node: Node) -> Iterator[str]:
    """Yield the paths of all series that a plan reads."""
    for request in scan_requests(node):
        yield from (f"{request.device}.{name}" for name in request.measurements)


# ---------------------------------------------------------------------------------------------- resolving names


def _missing(known: DeviceSchema | None, measurements: Sequence[str]) -> list[str]:
    return list(measurements) if known is None else [name for name in measurements if known.find(name) is None]


def _own_name(known: DeviceSchema | None, name: str) -> str:
    """Return the measurement that a name or an alias refers to."""
    series = None if known is None else known.find(name)
    return name if series is None else series.measurement


def _own_path(path: ast.PathExpression, store: Database) -> str:
    """Return the path with the series' measurement in place of its alias; patterns are returned unchanged."""
    text = str(path)
    if path.has_wildcard or len(path.nodes) < 3:
        return text
    device, name = split_series(text)
    return f"{device}.{_own_name(store.schema.device(device), name)}"


def _require_database(device: str, asked: AuthorizationRequest) -> None:
    """Raise NoPermission if a write would have to create the device's database and the user may not create it."""
    if asked.store.schema.database_of(device) is None:
        asked.access.require(Privilege.MANAGE_DATABASE)


# ---------------------------------------------------------------------------------------------- rules


def _allow_all(_: ast.Statement, __: AuthorizationRequest) -> None:
    return


def _needs(privilege: Privilege) -> Callable[[ast.Statement, AuthorizationRequest], None]:
    return lambda _, asked: asked.access.require(privilege)


def _select(select: ast.Select, asked: AuthorizationRequest) -> None:
    """Raise NoPermission for a path without wildcards that the user may not read, whether or not the series exists."""
    if select.table in TABLES:
        _show(TABLES[select.table], asked)
    expressions = [item.expression for item in select.items] + ([] if select.where is None else [select.where])
    suffixes = {path for expression in expressions for path in paths_of(expression)}
    for suffix in suffixes:
        for prefix in (None,) if suffix.absolute else select.from_paths:
            whole = suffix if prefix is None else ast.PathExpression(prefix.nodes + suffix.nodes)
            if not whole.has_wildcard:
                _require_readable(whole, asked)


def _require_readable(path: ast.PathExpression, asked: AuthorizationRequest) -> None:
    if not asked.access.may(Privilege.READ_DATA, _own_path(path, asked.store)):
        asked.access.require(Privilege.READ_DATA, [str(path)])


def _insert(insert: ast.Insert, asked: AuthorizationRequest) -> None:
    authorize_write(str(insert.device), insert.measurements, asked)


def _delete(delete: ast.DeleteData, asked: AuthorizationRequest) -> None:
    wait_for_schema(asked.store, patterns_of(delete), asked.deadline_ns)
    catalogue = asked.store.schema.catalogue
    paths = [source_of_alias(catalogue, str(path)) or _own_path(path, asked.store) for path in delete.paths]
    asked.access.require_all(Privilege.WRITE_DATA, paths)


def _create_timeseries(create: ast.CreateTimeseries, asked: AuthorizationRequest) -> None:
    wait_for_schema(asked.store, patterns_of(create), asked.deadline_ns)
    device = str(create.device)
    asked.access.require_all(Privilege.WRITE_SCHEMA, [f"{device}.{column.measurement}" for column in create.columns])
    if not create.device.has_wildcard:
        _require_database(device, asked)


def _delete_timeseries(delete: ast.DeleteTimeseries, asked: AuthorizationRequest) -> None:
    wait_for_schema(asked.store, patterns_of(delete), asked.deadline_ns)
    asked.access.require_all(Privilege.WRITE_SCHEMA, [_own_path(path, asked.store) for path in delete.paths])


def _alter_timeseries(alter: ast.AlterTimeseries, asked: AuthorizationRequest) -> None:
    wait_for_schema(asked.store, patterns_of(alter), asked.deadline_ns)
    asked.access.require(Privilege.WRITE_SCHEMA, [_own_path(alter.path, asked.store)])


def _alter_storage(alter: ast.AlterStorage, asked: AuthorizationRequest) -> None:
    wait_for_schema(asked.store, patterns_of(alter), asked.deadline_ns)
    asked.access.require_all(Privilege.WRITE_SCHEMA, [_own_path(path, asked.store) for path in alter.paths])


def _create_view(create: ast.CreateView, asked: AuthorizationRequest) -> None:
    """Check that the user may read the view's sources; `authorize_views` checks that the view may be created."""
    wait_for_schema(asked.store, patterns_of(create), asked.deadline_ns)
    _select(create.select, asked)


def _rename_view(rename: ast.RenameView, asked: AuthorizationRequest) -> None:
    wait_for_schema(asked.store, patterns_of(rename), asked.deadline_ns)
    asked.access.require_all(Privilege.WRITE_SCHEMA, [str(rename.path), str(rename.to)])


def _drop_views(drop: ast.DropViews, asked: AuthorizationRequest) -> None:
    asked.access.require_all(Privilege.WRITE_SCHEMA, [str(path) for path in drop.paths])


def _activate(activate: ast.ActivateTemplate, asked: AuthorizationRequest) -> None:
    asked.access.require_all(Privilege.WRITE_SCHEMA, [f"{activate.path}.**"])


def _deactivate(deactivate: ast.DeactivateTemplate, asked: AuthorizationRequest) -> None:
    asked.access.require_all(Privilege.WRITE_SCHEMA, [f"{path}.**" for path in deactivate.paths])


#: The privilege that each SHOW needs in addition to the privileges on its rows, or None.
SHOWING: dict[ast.ShowKind, Privilege | None] = {
    ast.ShowKind.DATABASES: None,
    ast.ShowKind.DEVICES: None,
    ast.ShowKind.TIMESERIES: None,
    ast.ShowKind.VIEWS: None,
    ast.ShowKind.CHILD_PATHS: None,
    ast.ShowKind.CHILD_NODES: None,
    ast.ShowKind.NODES: None,
    ast.ShowKind.QUERIES: None,
    ast.ShowKind.SLOW_QUERIES: None,
    ast.ShowKind.VERSION: None,
    ast.ShowKind.FUNCTIONS: None,
    ast.ShowKind.TRIGGERS: Privilege.USE_TRIGGER,
    ast.ShowKind.CURRENT_TIMESTAMP: None,
    ast.ShowKind.CURRENT_USER: None,
    ast.ShowKind.CURRENT_SQL_DIALECT: None,
    ast.ShowKind.TIME_ZONE: None,
    ast.ShowKind.VARIABLES: Privilege.MAINTAIN,
    ast.ShowKind.CLUSTER: Privilege.MAINTAIN,
    ast.ShowKind.CLUSTER_CHANGE: Privilege.MAINTAIN,
    ast.ShowKind.CLUSTER_ID: Privilege.MAINTAIN,
    ast.ShowKind.REGIONS: Privilege.MAINTAIN,
    ast.ShowKind.DATA_REGIONS: Privilege.MAINTAIN,
    ast.ShowKind.DATANODES: Privilege.MAINTAIN,
    ast.ShowKind.CONFIGNODES: Privilege.MAINTAIN,
    ast.ShowKind.URLS: None,
    ast.ShowKind.TTL: Privilege.MANAGE_DATABASE,
    ast.ShowKind.PARTITIONS: Privilege.MAINTAIN,
    ast.ShowKind.FILES: Privilege.MAINTAIN,
    ast.ShowKind.DISK_USAGE: Privilege.MAINTAIN,
    ast.ShowKind.TEMPLATES: None,
    ast.ShowKind.TEMPLATE_NODES: None,
    ast.ShowKind.TEMPLATE_SET: None,
    ast.ShowKind.TEMPLATE_USING: None,
    ast.ShowKind.CONTINUOUS_QUERIES: Privilege.USE_CQ,
    ast.ShowKind.SENDERS: Privilege.MAINTAIN,
    ast.ShowKind.RECEIVERS: Privilege.MAINTAIN,
    ast.ShowKind.SYNC: Privilege.MAINTAIN,
    ast.ShowKind.CONFIGURATION: Privilege.MAINTAIN,
}


def _show(show: ast.Show, asked: AuthorizationRequest) -> None:
    needed = SHOWING[show.kind]
    if needed is not None:
        asked.access.require(needed)


def _administrator(_: ast.ClusterStatement | ast.SyncStatement, asked: AuthorizationRequest) -> None:
    """Require an administrator: joining nodes get all data and hashes, and senders have data of several users."""
    if not asked.access.rights.administrator:
        raise NoPermission("an administrator")


def _explain(explain: ast.Explain, asked: AuthorizationRequest) -> None:
    RULES[type(explain.statement)].check(explain.statement, asked)


def _load(_: ast.Load, asked: AuthorizationRequest) -> None:
    """Require every privilege that a write may need, on all paths, because the file's content is unknown."""
    authorize_load(asked.access)


def _alter_user(alter: ast.AlterUser, asked: AuthorizationRequest) -> None:
    _require_credentials(alter.name, asked)


def _manage_token(statement: ast.CreateToken | ast.DropToken, asked: AuthorizationRequest) -> None:
    if statement.user is not None:
        _require_credentials(statement.user, asked)


def _require_credentials(user: str, asked: AuthorizationRequest) -> None:
    """Raise NoPermission unless the session may set the password of `user` and manage this user's tokens."""
    if user != asked.access.user:
        asked.access.require(Privilege.MANAGE_USER)
        _require_no_administrator(user, asked)


def _show_tokens(show: ast.ShowTokens, asked: AuthorizationRequest) -> None:
    if show.of_user not in (None, asked.access.user):
        asked.access.require(Privilege.MANAGE_USER)


def _drop_principal(drop: ast.DropPrincipal, asked: AuthorizationRequest) -> None:
    if drop.principal.kind is ast.PrincipalKind.ROLE:
        asked.access.require(Privilege.MANAGE_ROLE)
        return
    asked.access.require(Privilege.MANAGE_USER)
    _require_no_administrator(drop.principal.name, asked)


def _require_no_administrator(name: str, asked: AuthorizationRequest) -> None:
    """Raise NoPermission if `name` is an administrator, whose account no other user may take over."""
    user = asked.users.users.get(name)
    if user is not None and user.administrator:
        raise NoPermission("an administrator")


def _check_grant_option(statement: ast.Grant | ast.Revoke, asked: AuthorizationRequest) -> None:
    for area in statement.paths:
        for privilege in parse_privileges(statement.privileges):
            if not asked.access.rights.may_pass_on(privilege, parse_area(str(area))):
                raise NoPermission(f"{privilege.value} WITH GRANT OPTION", str(area))


def _list_users(listing: ast.ListUsers, asked: AuthorizationRequest) -> None:
    if listing.of_role is not None:
        asked.access.require(Privilege.MANAGE_USER)


def _list_roles(listing: ast.ListRoles, asked: AuthorizationRequest) -> None:
    if listing.of_user not in (None, asked.access.user):
        asked.access.require(Privilege.MANAGE_ROLE)


def _list_privileges(listing: ast.ListPrivileges, asked: AuthorizationRequest) -> None:
    access, holder = asked.access, listing.of
    if holder.kind is ast.PrincipalKind.USER:
        if holder.name != access.user:
            access.require(Privilege.MANAGE_USER)
    elif holder.name not in asked.users.user(access.user).roles:
        access.require(Privilege.MANAGE_ROLE)


_SCHEMA, _USERS, _DELETE, _LOAD, _CLUSTER = "schema", "users", "delete", "load", "cluster"
_SYNC = "sync"
_CHANGES = (_SCHEMA, _DELETE, _LOAD, _SYNC)
RULES: dict[type, Rule] = {
    ast.Select: Rule(_select),
    ast.Insert: Rule(_insert),
    ast.DeleteData: Rule(_delete, _DELETE),
    ast.CreateDatabase: Rule(_needs(Privilege.MANAGE_DATABASE), _SCHEMA),
    ast.AlterDatabase: Rule(_needs(Privilege.MANAGE_DATABASE), _SCHEMA),
    ast.DeleteDatabases: Rule(_needs(Privilege.MANAGE_DATABASE), _SCHEMA),
    ast.CreateTimeseries: Rule(_create_timeseries, _SCHEMA),
    ast.DeleteTimeseries: Rule(_delete_timeseries, _SCHEMA),
    ast.AlterTimeseries: Rule(_alter_timeseries, _SCHEMA),
    ast.AlterStorage: Rule(_alter_storage, _SCHEMA),
    ast.Show: Rule(_show),
    ast.Count: Rule(_allow_all),  # counts only objects that the user can see
    ast.Flush: Rule(_needs(Privilege.MAINTAIN)),
    ast.Merge: Rule(_needs(Privilege.MAINTAIN)),
    ast.ClearCache: Rule(_needs(Privilege.MAINTAIN)),
    ast.Load: Rule(_load, _LOAD),
    ast.CreateTemplate: Rule(_needs(Privilege.MANAGE_DATABASE), _SCHEMA),
    ast.AlterTemplate: Rule(_needs(Privilege.MANAGE_DATABASE), _SCHEMA),
    ast.DropTemplate: Rule(_needs(Privilege.MANAGE_DATABASE), _SCHEMA),
    ast.SetTemplate: Rule(_needs(Privilege.MANAGE_DATABASE), _SCHEMA),
    ast.UnsetTemplate: Rule(_needs(Privilege.MANAGE_DATABASE), _SCHEMA),
    ast.ActivateTemplate: Rule(_activate, _SCHEMA),
    ast.DeactivateTemplate: Rule(_deactivate, _SCHEMA),
    ast.CreateView: Rule(_create_view, _SCHEMA),
    ast.RenameView: Rule(_rename_view, _SCHEMA),
    ast.DropViews: Rule(_drop_views, _SCHEMA),
    ast.SetTtl: Rule(_needs(Privilege.MANAGE_DATABASE), _SCHEMA),
    ast.UnsetTtl: Rule(_needs(Privilege.MANAGE_DATABASE), _SCHEMA),
    ast.CreateContinuousQuery: Rule(_needs(Privilege.USE_CQ), _SCHEMA),  # the query runs with its creator's privileges
    ast.DropContinuousQuery: Rule(_needs(Privilege.USE_CQ), _SCHEMA),
    ast.CreateFunction: Rule(_needs(Privilege.USE_UDF), _SCHEMA),
    ast.DropFunction: Rule(_needs(Privilege.USE_UDF), _SCHEMA),
    ast.CreateTrigger: Rule(_needs(Privilege.USE_TRIGGER), _SCHEMA),
    ast.DropTrigger: Rule(_needs(Privilege.USE_TRIGGER), _SCHEMA),
    ast.SetSystem: Rule(_needs(Privilege.MAINTAIN), _CLUSTER),
    ast.SetConfiguration: Rule(_needs(Privilege.MAINTAIN), _CLUSTER),
    ast.LoadConfiguration: Rule(_needs(Privilege.MAINTAIN), _CLUSTER),
    ast.KillQuery: Rule(_allow_all),  # KILL ends only queries that SHOW QUERIES shows to the user
    ast.SetTimeZone: Rule(_allow_all),
    ast.SetPartialResults: Rule(_allow_all),
    ast.SetSqlDialect: Rule(_allow_all),
    ast.Explain: Rule(_explain),
    ast.CreateUser: Rule(_needs(Privilege.MANAGE_USER), _USERS),
    ast.AlterUser: Rule(_alter_user, _USERS),
    ast.CreateRole: Rule(_needs(Privilege.MANAGE_ROLE), _USERS),
    ast.DropPrincipal: Rule(_drop_principal, _USERS),
    ast.GrantRole: Rule(_needs(Privilege.MANAGE_ROLE), _USERS),
    ast.RevokeRole: Rule(_needs(Privilege.MANAGE_ROLE), _USERS),
    ast.Grant: Rule(_check_grant_option, _USERS),
    ast.Revoke: Rule(_check_grant_option, _USERS),
    ast.ListUsers: Rule(_list_users),
    ast.ListRoles: Rule(_list_roles),
    ast.ListPrivileges: Rule(_list_privileges),
    ast.CreateToken: Rule(_manage_token, _USERS),
    ast.DropToken: Rule(_manage_token, _USERS),
    ast.ShowTokens: Rule(_show_tokens),
    ast.AdmitNode: Rule(_administrator, _CLUSTER),
    ast.ChangeNodes: Rule(_administrator, _CLUSTER),
    ast.Rebalance: Rule(_administrator, _CLUSTER),
    ast.MigrateRegion: Rule(_administrator, _CLUSTER),
    ast.AbortChange: Rule(_administrator, _CLUSTER),
    ast.GiveUpNodes: Rule(_administrator, _CLUSTER),
    ast.DismissNode: Rule(_administrator, _CLUSTER),
    ast.TransferDevice: Rule(_administrator, _SYNC),
    ast.DropSender: Rule(_administrator, _SYNC),
    ast.NotSupported: Rule(_allow_all),  # it is always refused
}
