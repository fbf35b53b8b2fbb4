"""The statement tree: the meaning of a text, independent of the schema.

    text --parser--> Statement --engine: analysis--> typed plan

All nodes are frozen structs. `str(expression)` (`expression_tree.py`) is the name that IoTDB gives the result column.
Paths are `PathExpression`s: tuples of nodes in canonical form, which have back-quotes only if they need them
(`literals.quote_name`). `*` and `**` are wildcards unless they are quoted. Literals keep their text as written, because
this text appears in column names. A bound parameter is also a `Literal`.

Pure data: no state, any thread.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from saros_grammar.syntax.administration_tree import (
    AbortChange,
    AdmitNode,
    ChangeNodes,
    ClearCache,
    ClusterStatement,
    DismissNode,
    DropSender,
    Flush,
    GiveUpNodes,
    LoadConfiguration,
    Measure,
    Merge,
    MigrateRegion,
    Rebalance,
    SetConfiguration,
    SetSystem,
    SyncStatement,
    TransferDevice,
)
from saros_grammar.syntax.expression_tree import (
    Between,
    Binary,
    BinaryOperator,
    Call,
    Case,
    Cast,
    Duration,
    EndTimeReference,
    Expression,
    InList,
    IsNull,
    KeepCondition,
    Like,
    Literal,
    LiteralKind,
    Parameter,
    PathExpression,
    TimeReference,
    Unary,
)
from saros_grammar.syntax.extension_tree import (
    CreateFunction,
    CreateTrigger,
    DropFunction,
    DropTrigger,
    ExtensionStatement,
)
from saros_grammar.syntax.series_tree import (
    AlterKind,
    AlterStorage,
    AlterTimeseries,
    CreateTimeseries,
    DeleteTimeseries,
    SeriesColumn,
)
from saros_grammar.syntax.user_tree import (
    AlterUser,
    CreateRole,
    CreateToken,
    CreateUser,
    DropPrincipal,
    DropToken,
    Grant,
    GrantRole,
    ListPrivileges,
    ListRoles,
    ListUsers,
    Principal,
    PrincipalKind,
    Revoke,
    RevokeRole,
    ShowTokens,
    UserStatement,
)

#: The names that other modules of this package define, and that the users of this package import from here.
__all__ = [
    "AbortChange",
    "AdmitNode",
    "AlterKind",
    "AlterStorage",
    "AlterTimeseries",
    "AlterUser",
    "Between",
    "Binary",
    "BinaryOperator",
    "Call",
    "Case",
    "Cast",
    "ChangeNodes",
    "ClearCache",
    "ClusterStatement",
    "CreateFunction",
    "CreateRole",
    "CreateTimeseries",
    "CreateToken",
    "CreateTrigger",
    "CreateUser",
    "DeleteTimeseries",
    "DismissNode",
    "DropFunction",
    "DropPrincipal",
    "DropSender",
    "DropToken",
    "DropTrigger",
    "Duration",
    "EndTimeReference",
    "Expression",
    "ExtensionStatement",
    "Flush",
    "GiveUpNodes",
    "Grant",
    "GrantRole",
    "InList",
    "IsNull",
    "KeepCondition",
    "Like",
    "ListPrivileges",
    "ListRoles",
    "ListUsers",
    "Literal",
    "LiteralKind",
    "LoadConfiguration",
    "Measure",
    "Merge",
    "MigrateRegion",
    "Parameter",
    "PathExpression",
    "Principal",
    "PrincipalKind",
    "Rebalance",
    "Revoke",
    "RevokeRole",
    "SeriesColumn",
    "SetConfiguration",
    "SetSystem",
    "ShowTokens",
    "SyncStatement",
    "TimeReference",
    "TransferDevice",
    "Unary",
    "UserStatement",
]

# ---------------------------------------------------------------------------------------------- SELECT


class SelectItem(msgspec.Struct, frozen=True):
    """One result column before wildcards are expanded. The alias has no back-quotes."""

    expression: Expression
    alias: str | None = None


class GroupByTime(msgspec.Struct, frozen=True):
    """`GROUP BY ([start, end), interval[, step])`. `start` and `end` are None if no range is given.

    The range is `[start, end)`, or `(start, end]` if `left_open`. `step` defaults to `interval`.
    """

    start: Expression | None
    end: Expression | None
    interval: Duration
    step: Duration
    left_open: bool = False


class GroupByVariation(msgspec.Struct, frozen=True):
    """`GROUP BY VARIATION(control[, delta][, ignoreNull=bool])`."""

    control: Expression
    delta: float = 0.0
    ignore_null: bool = True


class GroupByCondition(msgspec.Struct, frozen=True):
    """`GROUP BY CONDITION(predicate[, KEEP op n][, ignoreNull=bool])`. `keep` is (operator, count).

    A plain `n` in place of `KEEP op n` means `KEEP >= n`. Without either, `keep` is None, which analysis refuses.
    """

    predicate: Expression
    keep: tuple[BinaryOperator, int] | None = None
    ignore_null: bool = True


class GroupBySession(msgspec.Struct, frozen=True):
    """`GROUP BY SESSION(gap)`."""

    gap: Duration


class GroupByCount(msgspec.Struct, frozen=True):
    """`GROUP BY COUNT(control, size[, ignoreNull=bool])`."""

    control: Expression
    size: int
    ignore_null: bool = True


GroupByWindow = GroupByTime | GroupByVariation | GroupByCondition | GroupBySession | GroupByCount


class FillMethod(Enum):
    """The method by which FILL replaces nulls."""

    PREVIOUS = "previous"
    LINEAR = "linear"
    VALUE = "value"


class Fill(msgspec.Struct, frozen=True):
    """`FILL(PREVIOUS | LINEAR | literal[, bound])`. The engine accepts a bound only for PREVIOUS."""

    method: FillMethod
    value: Expression | None = None
    bound: Duration | None = None


class SortKey(msgspec.Struct, frozen=True):
    """One ORDER BY item. If `nulls_first` is None, nulls are last in either direction, as in IoTDB."""

    expression: Expression
    descending: bool = False
    nulls_first: bool | None = None


class IntoItem(msgspec.Struct, frozen=True):
    """`[ALIGNED] device(measurement, ...)` of SELECT INTO.

    A node of the device may be `::` (the source's nodes from that level on) or contain `${i}` (node i of the source). A
    measurement may have the same forms.
    """

    device: tuple[str, ...]
    measurements: tuple[str, ...]
    aligned: bool = False


class Into(msgspec.Struct, frozen=True):
    """The targets of SELECT INTO."""

    items: tuple[IntoItem, ...]


class WithoutNull(msgspec.Struct, frozen=True):
    """WITHOUT NULL ANY | ALL [(columns)]: drops rows in which any or all of the columns (by default all) are null."""

    any_null: bool
    columns: tuple[Expression, ...] = ()


class Select(msgspec.Struct, frozen=True):
    """SELECT. If `from_paths` is empty, the engine reports an error.

    Names in ORDER BY (`time`, `device`, `timeseries`, `value`, `datatype`) are one-node paths, or a TimeReference.
    """

    items: tuple[SelectItem, ...]
    from_paths: tuple[PathExpression, ...]
    where: Expression | None = None
    group_by: GroupByWindow | None = None
    levels: tuple[int, ...] = ()
    tag_keys: tuple[str, ...] = ()
    having: Expression | None = None
    fill: Fill | None = None
    order_by: tuple[SortKey, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None
    slimit: Expression | None = None
    soffset: Expression | None = None
    align_by_device: bool = False
    last: bool = False
    into: Into | None = None
    without_null: WithoutNull | None = None
    #: The table in FROM information_schema.TABLE, in lower case. If it is given, `from_paths` is empty.
    table: str | None = None


# ---------------------------------------------------------------------------------------------- writing


class Insert(msgspec.Struct, frozen=True):
    """INSERT INTO device(time, m...) [ALIGNED] VALUES (t, v...), ...

    `times[i]` is the time of row i (None: now()). `rows[i]` has the values of row i in the order of `measurements`. A
    value is a Literal, a Parameter, or a computed time such as `now() - 1h`. The parser refuses rows of the wrong
    width.
    """

    device: PathExpression
    measurements: tuple[str, ...]
    times: tuple[Expression | None, ...]
    rows: tuple[tuple[Expression, ...], ...]
    aligned: bool = False


class DeleteData(msgspec.Struct, frozen=True):
    """DELETE FROM paths [WHERE time ...]."""

    paths: tuple[PathExpression, ...]
    where: Expression | None = None


# ---------------------------------------------------------------------------------------------- schema


class CreateDatabase(msgspec.Struct, frozen=True):
    """CREATE DATABASE path [WITH TTL=milliseconds]; SET STORAGE GROUP TO path."""

    path: PathExpression
    ttl: int | None = None


class AlterDatabase(msgspec.Struct, frozen=True):
    """ALTER DATABASE path WITH TTL=milliseconds. The TTL is None if none of the statement's settings has an effect."""

    path: PathExpression
    ttl: int | None


class DeleteDatabases(msgspec.Struct, frozen=True):
    """DELETE / DROP DATABASE(S) patterns."""

    paths: tuple[PathExpression, ...]


class CreateTemplate(msgspec.Struct, frozen=True):
    """CREATE DEVICE TEMPLATE name [ALIGNED] (measurement type ..., ...). The name has no back-quotes."""

    name: str
    columns: tuple[SeriesColumn, ...]
    aligned: bool = False


class AlterTemplate(msgspec.Struct, frozen=True):
    """ALTER DEVICE TEMPLATE name ADD (measurement type ..., ...)."""

    name: str
    columns: tuple[SeriesColumn, ...]


class DropTemplate(msgspec.Struct, frozen=True):
    """DROP DEVICE TEMPLATE name."""

    name: str


class SetTemplate(msgspec.Struct, frozen=True):
    """SET DEVICE TEMPLATE name TO path."""

    name: str
    path: PathExpression


class UnsetTemplate(msgspec.Struct, frozen=True):
    """UNSET DEVICE TEMPLATE name FROM path."""

    name: str
    path: PathExpression


class ActivateTemplate(msgspec.Struct, frozen=True):
    """CREATE TIMESERIES USING DEVICE TEMPLATE ON path."""

    path: PathExpression


class DeactivateTemplate(msgspec.Struct, frozen=True):
    """DEACTIVATE DEVICE TEMPLATE [name] FROM patterns.

    Without a name, all templates that the matching devices use are deactivated.
    """

    name: str | None
    paths: tuple[PathExpression, ...]


TemplateStatement = (
    CreateTemplate | AlterTemplate | DropTemplate | SetTemplate | UnsetTemplate | ActivateTemplate | DeactivateTemplate
)


# ---------------------------------------------------------------------------------------------- logical views


class CreateView(msgspec.Struct, frozen=True):
    """CREATE VIEW targets AS sources. If `exists` is True, the statement is ALTER VIEW, which creates no new views.

    `select` has only items and FROM paths. If the sources are paths, these paths are the items of `select`.
    """

    targets: Into
    select: Select
    exists: bool = False


class RenameView(msgspec.Struct, frozen=True):
    """ALTER VIEW path RENAME TO path."""

    path: PathExpression
    to: PathExpression


class DropViews(msgspec.Struct, frozen=True):
    """DROP VIEW pattern, ..."""

    paths: tuple[PathExpression, ...]


ViewStatement = CreateView | RenameView | DropViews


# ---------------------------------------------------------------------------------------------- continuous queries


class CreateContinuousQuery(msgspec.Struct, frozen=True):
    """CREATE CQ name [RESAMPLE [EVERY d] [BOUNDARY t] [RANGE start[, end]]] [TIMEOUT POLICY p] BEGIN select END.

    `text` is the SELECT as written, which is valid SQL. Durations that are not given are None. `blocked` is False for
    TIMEOUT POLICY DISCARD.
    """

    name: str
    text: str
    every: Duration | None = None
    boundary: Literal | None = None
    start: Duration | None = None
    end: Duration | None = None
    blocked: bool = True


class DropContinuousQuery(msgspec.Struct, frozen=True):
    """DROP CQ name."""

    name: str


# ---------------------------------------------------------------------------------------------- SHOW, COUNT, other


class ShowKind(Enum):
    """The kind of objects that SHOW or COUNT lists."""

    DATABASES = "databases"
    DEVICES = "devices"
    TIMESERIES = "timeseries"
    VIEWS = "view"
    CHILD_PATHS = "child paths"
    CHILD_NODES = "child nodes"
    NODES = "nodes"
    QUERIES = "queries"
    SLOW_QUERIES = "slow queries"
    VERSION = "version"
    VARIABLES = "variables"
    FUNCTIONS = "functions"
    TRIGGERS = "triggers"
    CURRENT_TIMESTAMP = "current_timestamp"
    CURRENT_USER = "current_user"
    CURRENT_SQL_DIALECT = "current_sql_dialect"
    TIME_ZONE = "time zone"
    CLUSTER = "cluster"
    CLUSTER_CHANGE = "cluster change"
    REGIONS = "regions"
    #: All regions except the meta group's region.
    DATA_REGIONS = "data regions"
    DATANODES = "datanodes"
    CONFIGNODES = "confignodes"
    CLUSTER_ID = "clusterid"
    URLS = "available urls"
    TTL = "ttl"
    PARTITIONS = "partitions"
    FILES = "files"
    DISK_USAGE = "disk_usage"
    TEMPLATES = "device templates"
    TEMPLATE_NODES = "nodes in device template"
    TEMPLATE_SET = "paths set device template"
    TEMPLATE_USING = "paths using device template"
    CONTINUOUS_QUERIES = "continuous queries"
    SENDERS = "senders"
    RECEIVERS = "receivers"
    SYNC = "sync"
    CONFIGURATION = "configuration"


#: Kinds whose WHERE, ORDER BY and LIMIT apply to the rows of the result. These clauses use column names.
CHOSEN_BY_COLUMNS = frozenset({ShowKind.QUERIES, ShowKind.SLOW_QUERIES, ShowKind.DISK_USAGE})


class Show(msgspec.Struct, frozen=True):
    """SHOW kind [path] [WHERE ...] [LIMIT] [OFFSET].

    `databases`: SHOW REGIONS, PARTITIONS, FILES OF DATABASE; SHOW TTL ON.
    `details`: DATABASES DETAILS, CLUSTER DETAILS, DEVICES WITH DATABASE, CONFIGURATION WITH DESC.
    `nodes`: SHOW REGIONS ON NODEID, where empty means all nodes; SHOW CONFIGURATION ON, where it means this node.

    In `where` of Show and Count (except for `CHOSEN_BY_COLUMNS`), the left side of a comparison is a path with one node
    in lower case (`timeseries`, `datatype`, `device`, `template`, ...) or `Call("tags", (key,))`. The right side is a
    STRING literal, even if it is a name without quotes in the text. `x CONTAINS 'y'` is `Call("contains", (x, y))`.
    """

    kind: ShowKind
    path: PathExpression | None = None
    where: Expression | None = None
    limit: Expression | None = None
    offset: Expression | None = None
    latest: bool = False
    details: bool = False
    order_by: tuple[SortKey, ...] = ()
    databases: tuple[PathExpression, ...] = ()
    template: str | None = None
    nodes: tuple[int, ...] = ()


class Count(msgspec.Struct, frozen=True):
    """COUNT kind [path] [WHERE ...] [GROUP BY LEVEL = n] (NODES: LEVEL = n)."""

    kind: ShowKind
    path: PathExpression | None = None
    where: Expression | None = None
    level: int | None = None


class Load(msgspec.Struct, frozen=True):
    """LOAD 'file or folder' [sglevel=n] [verify=true|false] [onSuccess=none|delete]. Absent options are None."""

    source: str
    level: int | None = None
    verify: bool | None = None
    delete: bool | None = None


class SetTtl(msgspec.Struct, frozen=True):
    """SET TTL TO pattern milliseconds | INF (None)."""

    path: PathExpression
    milliseconds: int | None


class UnsetTtl(msgspec.Struct, frozen=True):
    """UNSET TTL FROM | TO pattern."""

    path: PathExpression


class KillQuery(msgspec.Struct, frozen=True):
    """KILL QUERY 'id' | KILL ALL QUERIES (None)."""

    query_id: str | None


class SetTimeZone(msgspec.Struct, frozen=True):
    """SET TIME ZONE TO 'Asia/Shanghai' | '+08:00'."""

    zone: str


class SetPartialResults(msgspec.Struct, frozen=True):
    """SET ALLOW PARTIAL RESULTS TRUE | FALSE."""

    allowed: bool


class SetSqlDialect(msgspec.Struct, frozen=True):
    """SET SQL_DIALECT = TREE, the only dialect."""


class Explain(msgspec.Struct, frozen=True):
    """EXPLAIN [ANALYZE [VERBOSE]] statement."""

    statement: Statement
    analyze: bool = False
    verbose: bool = False


# ---------------------------------------------------------------------------------------------- users


def holds_password(statement: Statement) -> bool:
    """Return whether the statement has a password, so that its text must be redacted."""
    if isinstance(statement, Explain):
        return holds_password(statement.statement)
    return isinstance(statement, CreateUser | AlterUser)


# ---------------------------------------------------------------------------------------------- all


class NotSupported(msgspec.Struct, frozen=True):
    """A statement that the parser recognizes but Saros does not support. `what` names it in the error message."""

    what: str


Statement = (
    Select
    | Insert
    | DeleteData
    | CreateDatabase
    | AlterDatabase
    | DeleteDatabases
    | CreateTimeseries
    | DeleteTimeseries
    | AlterTimeseries
    | AlterStorage
    | Show
    | Count
    | Flush
    | Merge
    | ClearCache
    | SetSystem
    | SetConfiguration
    | LoadConfiguration
    | Load
    | SetTtl
    | UnsetTtl
    | KillQuery
    | SetPartialResults
    | SetTimeZone
    | SetSqlDialect
    | Explain
    | TemplateStatement
    | ViewStatement
    | CreateContinuousQuery
    | DropContinuousQuery
    | ExtensionStatement
    | UserStatement
    | ClusterStatement
    | SyncStatement
    | NotSupported
)


class Parsed(msgspec.Struct, frozen=True):
    """The result of parsing one text: the statement with unbound parameters, and its number of `?`.

    `shape` is the text without its literals, and is the key of plan caches. Statements with the same shape differ only
    in literals. INSERT has no plan to cache, so its shape is "" and its literals are ().
    """

    statement: Statement
    parameters: int
    shape: str
    #: The literals that are not part of the shape, in text order. A plan cache fills them into a cached plan.
    literals: tuple[Literal, ...] = msgspec.field(default=())
    #: The text with masked passwords for logs and lists, or None if the text itself may be shown.
    redacted: str | None = None
