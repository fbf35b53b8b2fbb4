"""The statement tree: what a text means, before anyone looks at the schema.

    text --parser--> Statement --engine: analysis--> typed plan

Everything is a frozen dataclass; expressions print themselves as IoTDB names its result columns (`str(expression)`).
Paths are `PathExpression`s: a tuple of nodes as the user wrote their content (back-quotes removed, `quoted` kept in the
canonical text by `quote_node`); `*` and `**` stand for themselves unless they were quoted.
Literals keep the text they were written with, since it appears in column names. A bound parameter is a `Literal` too.

Pure data: no state, any thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

# ---------------------------------------------------------------------------------------------- paths and literals


@dataclass(frozen=True, slots=True)
class PathExpression:
    """A series, device or pattern: canonical nodes (quoted with back-quotes only where needed), `*`, `**` or `a*b`.

    `absolute` if it begins with `root`; a relative one is a suffix of each FROM path. In an expression, the single
    relative node `time` (any case) is the time column and parses as `TimeReference` instead.
    """

    nodes: tuple[str, ...]

    @property
    def absolute(self) -> bool:
        """Whether it starts at the root."""
        return bool(self.nodes) and self.nodes[0] == "root"

    @property
    def has_wildcard(self) -> bool:
        """Whether a node is or contains an unquoted `*`."""
        return any("*" in n and not n.startswith("`") for n in self.nodes)

    def __str__(self) -> str:
        return ".".join(self.nodes)


class LiteralKind(Enum):
    """What a literal is; its Python value's type follows from it."""

    NULL = "null"  # None
    BOOLEAN = "boolean"  # bool
    INTEGER = "integer"  # int
    DOUBLE = "double"  # float (also NaN)
    STRING = "string"  # str
    BLOB = "blob"  # bytes: X'0aff'
    TIME = "time"  # int in the instance's time unit: a date literal, or now() once folded
    DURATION = "duration"  # Duration


@dataclass(frozen=True, slots=True)
class Duration:
    """`months` calendar months plus `ticks` in nanoseconds (a month has no fixed length, so they stay apart)."""

    months: int = 0
    nanoseconds: int = 0


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. `text` is what the user wrote (strings with their quotes); it is what `str` gives.

    A date literal (TIME) carries its text as value until the engine gives it a zone: `value` is then the str.
    """

    kind: LiteralKind
    value: bool | int | float | str | bytes | Duration | None
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Parameter:
    """The `index`-th `?` (from 0), before values are bound."""

    index: int

    def __str__(self) -> str:
        return "?"


# ---------------------------------------------------------------------------------------------- expressions


class BinaryOperator(Enum):
    """Two-sided operators; the value is how they print."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULO = "%"
    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    AND = "&"
    OR = "|"


@dataclass(frozen=True, slots=True)
class TimeReference:
    """The time column; prints `Time`."""

    def __str__(self) -> str:
        return "Time"


@dataclass(frozen=True, slots=True)
class EndTimeReference:
    """`__endTime`: the last time of a window (with GROUP BY)."""

    def __str__(self) -> str:
        return "__endTime"


@dataclass(frozen=True, slots=True)
class Unary:
    """`-x` or `!x`; operator is "-" or "!"."""

    operator: str
    operand: Expression

    def __str__(self) -> str:
        return f"{self.operator}{_wrap(self.operand, _UNARY)}"


@dataclass(frozen=True, slots=True)
class Binary:
    """`left operator right`."""

    operator: BinaryOperator
    left: Expression
    right: Expression

    def __str__(self) -> str:
        level = _level(self)
        return f"{_wrap(self.left, level)} {self.operator.value} {_wrap(self.right, level + 1)}"


@dataclass(frozen=True, slots=True)
class Call:
    """`name(arguments)`: aggregate, scalar or series function. `name` as written; `attributes` are `'k'='v'` pairs.

    `from_for`: it was written `SUBSTRING(x FROM start FOR length)`.
    """

    name: str
    arguments: tuple[Expression, ...]
    attributes: tuple[tuple[str, str], ...] = ()
    from_for: bool = False

    def __str__(self) -> str:
        if self.name.lower() == "count_time":  # whose argument stands for all series, and is not spelled out
            return f"{self.name}(*)"
        parts = [str(a) for a in self.arguments] + [f'"{k}"="{v}"' for k, v in self.attributes]
        special = _SPECIAL_NAMES.get(self.name.lower())
        if special is None:
            return f"{self.name}({', '.join(parts)})"
        if self.from_for:
            words = ("", " FROM ", " FOR ")
            return f"{special}({''.join(w + p for w, p in zip(words, parts, strict=False))})"
        return f"{special}({(', ' if special == 'REPLACE' else ',').join(parts)})"


@dataclass(frozen=True, slots=True)
class Keep:
    """`keep >= 3`, the second argument of COUNT_IF; `count` is an INTEGER literal or a parameter."""

    operator: BinaryOperator
    count: Expression

    def __str__(self) -> str:
        return f"keep {self.operator.value} {self.count}"


@dataclass(frozen=True, slots=True)
class Between:
    """`operand [NOT] BETWEEN low AND high`."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False

    def __str__(self) -> str:
        word = "NOT BETWEEN" if self.negated else "BETWEEN"
        return f"{self.operand} {word} {self.low} AND {self.high}"


@dataclass(frozen=True, slots=True)
class IsNull:
    """`operand IS [NOT] NULL`."""

    operand: Expression
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.operand} IS {'NOT ' if self.negated else ''}NULL"


@dataclass(frozen=True, slots=True)
class InList:
    """`operand [NOT] IN (items)`."""

    operand: Expression
    items: tuple[Expression, ...]
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.operand} {'NOT ' if self.negated else ''}IN ({','.join(str(i) for i in self.items)})"


@dataclass(frozen=True, slots=True)
class Like:
    """`operand [NOT] LIKE pattern` (`regexp=False`) or `REGEXP`; pattern is a STRING literal or a parameter."""

    operand: Expression
    pattern: Expression
    regexp: bool = False
    negated: bool = False

    def __str__(self) -> str:
        word = "REGEXP" if self.regexp else "LIKE"
        return f"{self.operand} {'NOT ' if self.negated else ''}{word} {self.pattern}"


@dataclass(frozen=True, slots=True)
class Cast:
    """`CAST(operand AS type_name)`; type name in upper case."""

    operand: Expression
    type_name: str

    def __str__(self) -> str:
        return f"CAST({self.operand} AS {self.type_name})"


@dataclass(frozen=True, slots=True)
class Case:
    """Searched CASE; a simple CASE is rewritten to equality tests by the parser, as IoTDB prints it."""

    whens: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None

    def __str__(self) -> str:
        parts = [f"WHEN {condition} THEN {result}" for condition, result in self.whens]
        tail = "" if self.otherwise is None else f" ELSE {self.otherwise}"
        return f"CASE {' '.join(parts)}{tail} END"


Expression = (
    PathExpression
    | Literal
    | Parameter
    | TimeReference
    | EndTimeReference
    | Unary
    | Binary
    | Call
    | Keep
    | Between
    | IsNull
    | InList
    | Like
    | Cast
    | Case
)

#: IoTDB has syntax of its own for these and prints them in upper case; only REPLACE has spaces after its commas.
_SPECIAL_NAMES = {"round": "ROUND", "replace": "REPLACE", "substring": "SUBSTRING"}
_UNARY = 7
_LEVELS = {"*": 6, "/": 6, "%": 6, "+": 5, "-": 5, "=": 3, "!=": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "&": 2, "|": 1}


def _level(expression: Expression) -> int:
    return _LEVELS[expression.operator.value] if isinstance(expression, Binary) else 9


def _wrap(expression: Expression, level: int) -> str:
    """Parentheses only where the tree needs them."""
    return f"({expression})" if _level(expression) < level else str(expression)


# ---------------------------------------------------------------------------------------------- SELECT


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One result column before wildcards are expanded; alias without back-quotes."""

    expression: Expression
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class GroupByTime:
    """`GROUP BY ([start, end), interval[, step])`; start and end None mean "all data" (only with a value they are set).

    Half-open unless `left_open` (`(start, end]`). `step` defaults to `interval`.
    """

    start: Expression | None
    end: Expression | None
    interval: Duration
    step: Duration
    left_open: bool = False


@dataclass(frozen=True, slots=True)
class GroupByVariation:
    """`GROUP BY VARIATION(control[, delta][, ignoreNull=bool])`."""

    control: Expression
    delta: float = 0.0
    ignore_null: bool = True


@dataclass(frozen=True, slots=True)
class GroupByCondition:
    """`GROUP BY CONDITION(predicate[, KEEP op n][, ignoreNull=bool])`; `keep` is (operator, count)."""

    predicate: Expression
    keep: tuple[BinaryOperator, int] | None = None
    ignore_null: bool = True


@dataclass(frozen=True, slots=True)
class GroupBySession:
    """`GROUP BY SESSION(gap)`."""

    gap: Duration


@dataclass(frozen=True, slots=True)
class GroupByCount:
    """`GROUP BY COUNT(control, size[, ignoreNull=bool])`."""

    control: Expression
    size: int
    ignore_null: bool = True


GroupByWindow = GroupByTime | GroupByVariation | GroupByCondition | GroupBySession | GroupByCount


class FillMethod(Enum):
    """How FILL replaces nulls."""

    PREVIOUS = "previous"
    LINEAR = "linear"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Fill:
    """`FILL(PREVIOUS[, bound] | LINEAR | literal)`."""

    method: FillMethod
    value: Expression | None = None
    bound: Duration | None = None


@dataclass(frozen=True, slots=True)
class SortKey:
    """One ORDER BY item. `nulls_first` None: last when ascending, first when descending, as IoTDB does."""

    expression: Expression
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True, slots=True)
class Into:
    """One `INTO` target path pattern with its `ALIGNED` flag (SELECT INTO; parsed, planned later)."""

    targets: tuple[tuple[PathExpression, bool], ...]


@dataclass(frozen=True, slots=True)
class Select:
    """SELECT. Empty `from_paths` is an error that the engine reports.

    ORDER BY names (`time`, `device`, `timeseries`, `value`, `datatype`) come as one-node paths or TimeReference.
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


# ---------------------------------------------------------------------------------------------- writing


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO device(time, m...) [ALIGNED] VALUES (t, v...), ...

    `times[i]` is row i's time (None: now()); `rows[i]` its values in the measurements' order. A value is a Literal or a
    Parameter; a row of the wrong width has been refused by the parser.
    """

    device: PathExpression
    measurements: tuple[str, ...]
    times: tuple[Expression | None, ...]
    rows: tuple[tuple[Literal | Parameter, ...], ...]
    aligned: bool = False


@dataclass(frozen=True, slots=True)
class DeleteData:
    """DELETE FROM paths [WHERE time ...]."""

    paths: tuple[PathExpression, ...]
    where: Expression | None = None


# ---------------------------------------------------------------------------------------------- schema


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    """CREATE DATABASE path; SET STORAGE GROUP TO path."""

    path: PathExpression


@dataclass(frozen=True, slots=True)
class DeleteDatabases:
    """DELETE / DROP DATABASE(S) patterns."""

    paths: tuple[PathExpression, ...]


@dataclass(frozen=True, slots=True)
class SeriesColumn:
    """What one series of CREATE TIMESERIES is; names in upper case, None where not given."""

    measurement: str
    type_name: str
    encoding: str | None = None
    compressor: str | None = None
    alias: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    #: Other `key=value` pairs of WITH (deadband etc.): refused by the engine by name.
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTimeseries:
    """CREATE TIMESERIES device.measurement ...; CREATE ALIGNED TIMESERIES device(m type ..., ...)."""

    device: PathExpression
    columns: tuple[SeriesColumn, ...]
    aligned: bool = False


@dataclass(frozen=True, slots=True)
class DeleteTimeseries:
    """DELETE / DROP TIMESERIES patterns."""

    paths: tuple[PathExpression, ...]


class AlterKind(Enum):
    """Forms of ALTER TIMESERIES."""

    RENAME = "rename"  # names = ((old, new),)
    SET = "set"
    DROP = "drop"  # keys in names as (key, "")
    ADD_TAGS = "add tags"
    ADD_ATTRIBUTES = "add attributes"
    UPSERT = "upsert"


@dataclass(frozen=True, slots=True)
class AlterTimeseries:
    """ALTER TIMESERIES path (RENAME a TO b | SET k=v | DROP k | ADD TAGS | ADD ATTRIBUTES | UPSERT ...)."""

    path: PathExpression
    kind: AlterKind
    names: tuple[tuple[str, str], ...] = ()
    alias: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()


# ---------------------------------------------------------------------------------------------- SHOW, COUNT, life


class ShowKind(Enum):
    """What SHOW and COUNT are about."""

    DATABASES = "databases"
    DEVICES = "devices"
    TIMESERIES = "timeseries"
    CHILD_PATHS = "child paths"
    CHILD_NODES = "child nodes"
    NODES = "nodes"
    QUERIES = "queries"
    VERSION = "version"
    VARIABLES = "variables"
    FUNCTIONS = "functions"
    CURRENT_TIMESTAMP = "current_timestamp"
    TIME_ZONE = "time zone"
    CLUSTER = "cluster"
    REGIONS = "regions"
    TTL = "ttl"
    PARTITIONS = "partitions"
    FILES = "files"


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW kind [path] [WHERE ...] [LIMIT] [OFFSET].

    `databases`: SHOW REGIONS, PARTITIONS, FILES OF DATABASE; SHOW TTL ON.
    `details`: DATABASES DETAILS, CLUSTER DETAILS, WITH DATABASE of DEVICES.

    In `where`, of Show and of Count, the subjects are one-node paths in lower case (`timeseries`, `datatype`, `device`,
    `template`, ...) and `Call("tags", (key,))`; what they are compared with is a STRING literal whether it was quoted
    or not; `x CONTAINS 'y'` is `Call("contains", (x, y))`.
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


@dataclass(frozen=True, slots=True)
class Count:
    """COUNT kind [path] [WHERE ...] [GROUP BY LEVEL = n] (NODES: LEVEL = n)."""

    kind: ShowKind
    path: PathExpression | None = None
    where: Expression | None = None
    level: int | None = None


@dataclass(frozen=True, slots=True)
class Flush:
    """FLUSH [database, ...]."""

    databases: tuple[PathExpression, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """[FULL] MERGE [database, ...]."""

    databases: tuple[PathExpression, ...] = ()
    full: bool = False


@dataclass(frozen=True, slots=True)
class Load:
    """LOAD 'file or folder' [sglevel=n] [verify=true|false] [onSuccess=none|delete]; options None where not given."""

    source: str
    level: int | None = None
    verify: bool | None = None
    delete: bool | None = None


@dataclass(frozen=True, slots=True)
class SetTtl:
    """SET TTL TO pattern milliseconds | INF (None)."""

    path: PathExpression
    milliseconds: int | None


@dataclass(frozen=True, slots=True)
class UnsetTtl:
    """UNSET TTL FROM | TO pattern."""

    path: PathExpression


@dataclass(frozen=True, slots=True)
class KillQuery:
    """KILL QUERY 'id' | KILL ALL QUERIES (None)."""

    query_id: str | None


@dataclass(frozen=True, slots=True)
class SetTimeZone:
    """SET TIME ZONE TO 'Asia/Shanghai' | '+08:00'."""

    zone: str


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN [ANALYZE [VERBOSE]] statement."""

    statement: Statement
    analyze: bool = False
    verbose: bool = False


# ---------------------------------------------------------------------------------------------- users


class PrincipalKind(Enum):
    """Who holds privileges."""

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
)


def holds_password(statement: Statement) -> bool:
    """Whether its text must not be kept as it is."""
    if isinstance(statement, Explain):
        return holds_password(statement.statement)
    return isinstance(statement, CreateUser | AlterUser)


# ---------------------------------------------------------------------------------------------- all


@dataclass(frozen=True, slots=True)
class NotSupported:
    """A statement of the dialect that parses and is not carried out yet; `what` names it in the error."""

    what: str


Statement = (
    Select
    | Insert
    | DeleteData
    | CreateDatabase
    | DeleteDatabases
    | CreateTimeseries
    | DeleteTimeseries
    | AlterTimeseries
    | Show
    | Count
    | Flush
    | Merge
    | Load
    | SetTtl
    | UnsetTtl
    | KillQuery
    | SetTimeZone
    | Explain
    | UserStatement
    | NotSupported
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the front end answers for one text: the statement (parameters unbound) and how many `?` it has.

    `shape` is the literal-stripped text, the key for plan caches; statements of equal shape differ only in literals.
    INSERT has no plan to cache: its shape is "" and its literals are ().
    """

    statement: Statement
    parameters: int
    shape: str
    #: The literals that may differ, in text order, for a plan cache that re-binds them.
    literals: tuple[Literal, ...] = field(default=())
    #: What may be kept and shown in place of the text; None: the text itself.
    redacted: str | None = None
