"""Status codes: one table with number, name, class and advice. Pure data: any thread.

If IoTDB has a code for a condition, Saros uses the same number. Saros's own codes begin at 2000. Packages that may not
import this package raise exceptions with a `code`. The driver looks up the class of the code here, and raises the PEP
249 exception for this class.
"""

from __future__ import annotations

from enum import Enum

import msgspec


class ErrorClass(Enum):
    """The class of an error. It says how the caller should react.

    The driver maps each class to a PEP 249 exception.
    """

    PROGRAMMING = "fix the statement or the call"  # ProgrammingError
    DATA = "fix the value"  # DataError
    INTEGRITY = "the object exists or is missing"  # IntegrityError
    OPERATIONAL = "look at the server, then try again"  # OperationalError
    NOT_SUPPORTED = "use another way"  # NotSupportedError
    INTERNAL = "report a bug"  # InternalError


class Status(msgspec.Struct, frozen=True):
    """One row of the table."""

    code: int
    name: str
    error_class: ErrorClass
    advice: str


_ROWS = (
    Status(301, "EXECUTE_STATEMENT_ERROR", ErrorClass.PROGRAMMING, "Change the statement; see the message for why."),
    Status(303, "ILLEGAL_PARAMETER", ErrorClass.PROGRAMMING, "Name one path, or all paths below one: root.db.**."),
    Status(501, "DATABASE_ALREADY_EXISTS", ErrorClass.INTEGRITY, "Use the existing database, or choose another path."),
    Status(503, "TIMESERIES_ALREADY_EXIST", ErrorClass.INTEGRITY, "Use the existing series, or choose another name."),
    Status(504, "DATABASE_NOT_EXIST", ErrorClass.INTEGRITY, "See SHOW DATABASES; create it with CREATE DATABASE."),
    Status(505, "ALIAS_ALREADY_EXIST", ErrorClass.INTEGRITY, "Choose another alias."),
    Status(506, "PATH_ALREADY_EXIST", ErrorClass.INTEGRITY, "This path is a series, or has series below it."),
    Status(
        507,
        "METADATA_ERROR",
        ErrorClass.DATA,
        "Use a value of the series' type (see SHOW TIMESERIES), or another encoding or name.",
    ),
    Status(
        508,
        "PATH_NOT_EXIST",
        ErrorClass.INTEGRITY,
        "See SHOW TIMESERIES or SHOW DATABASES; a pattern needs * or **.",
    ),
    Status(509, "ILLEGAL_PATH", ErrorClass.PROGRAMMING, "Quote special names with backticks: root.sg.`a.b`."),
    Status(510, "CREATE_TEMPLATE_ERROR", ErrorClass.PROGRAMMING, "Choose an encoding that the type supports."),
    Status(511, "ALIGNED_MISMATCH", ErrorClass.PROGRAMMING, "Write to the device as it was created: aligned or not."),
    Status(512, "UNDEFINED_TEMPLATE", ErrorClass.INTEGRITY, "See SHOW DEVICE TEMPLATES."),
    Status(513, "TEMPLATE_NOT_SET", ErrorClass.INTEGRITY, "See SHOW PATHS SET DEVICE TEMPLATE; set it first."),
    Status(515, "TEMPLATE_IS_IN_USE", ErrorClass.INTEGRITY, "DEACTIVATE or UNSET the template first, then try again."),
    Status(516, "TEMPLATE_INCOMPATIBLE", ErrorClass.INTEGRITY, "Choose a path that has no series and no template."),
    Status(524, "TEMPLATE_NOT_ACTIVATED", ErrorClass.INTEGRITY, "See SHOW PATHS USING DEVICE TEMPLATE."),
    Status(
        527,
        "MEASUREMENT_ALREADY_EXISTS_IN_TEMPLATE",
        ErrorClass.INTEGRITY,
        "See SHOW NODES IN DEVICE TEMPLATE; choose another name.",
    ),
    Status(529, "DATABASE_CONFLICT", ErrorClass.INTEGRITY, "Databases do not nest: choose another path."),
    Status(
        600,
        "SYSTEM_READ_ONLY",
        ErrorClass.OPERATIONAL,
        "To allow writes: SET SYSTEM TO RUNNING, or open the folder without read_only.",
    ),
    Status(606, "WRITE_REJECTED", ErrorClass.OPERATIONAL, "Flushing is behind; slow down and try again."),
    Status(607, "OUT_OF_TTL", ErrorClass.DATA, "The points are older than their TTL: see SHOW ALL TTL."),
    Status(611, "DISK_SPACE_INSUFFICIENT", ErrorClass.OPERATIONAL, "Free disk space; writes then resume."),
    Status(700, "SQL_PARSE_ERROR", ErrorClass.PROGRAMMING, "See the caret; the message says what was expected."),
    Status(701, "SEMANTIC_ERROR", ErrorClass.PROGRAMMING, "Correct the statement as the message says."),
    Status(709, "QUERY_MEMORY_EXCEEDED", ErrorClass.OPERATIONAL, "Narrow the query, or raise query_memory_bytes."),
    Status(712, "QUERY_TIMEOUT", ErrorClass.OPERATIONAL, "Narrow the query, or raise query_timeout_ms."),
    Status(714, "QUERY_NOT_EXIST", ErrorClass.PROGRAMMING, "See SHOW QUERIES; it may have finished."),
    Status(715, "QUERY_WAS_KILLED", ErrorClass.OPERATIONAL, "Someone cancelled the query."),
    Status(750, "NUMERIC_VALUE_OUT_OF_RANGE", ErrorClass.DATA, "The result overflows its type: CAST to DOUBLE."),
    Status(
        751,
        "DIVISION_BY_ZERO",
        ErrorClass.DATA,
        "Exclude the rows (WHERE or CASE WHEN), or CAST one side to DOUBLE.",
    ),
    Status(801, "WRONG_LOGIN_PASSWORD", ErrorClass.OPERATIONAL, "Check user and password; if locked out, wait."),
    Status(803, "NO_PERMISSION", ErrorClass.PROGRAMMING, "Ask an administrator to grant the privilege."),
    Status(804, "USER_NOT_EXIST", ErrorClass.INTEGRITY, "See LIST USER."),
    Status(805, "USER_ALREADY_EXIST", ErrorClass.INTEGRITY, "Use the existing user, or choose another name."),
    Status(806, "USER_ALREADY_HAS_ROLE", ErrorClass.INTEGRITY, "Nothing to do."),
    Status(807, "USER_NOT_HAS_ROLE", ErrorClass.INTEGRITY, "See LIST ROLE OF USER."),
    Status(808, "ROLE_NOT_EXIST", ErrorClass.INTEGRITY, "See LIST ROLE."),
    Status(809, "ROLE_ALREADY_EXIST", ErrorClass.INTEGRITY, "Use the existing role, or choose another name."),
    Status(811, "NOT_HAS_PRIVILEGE", ErrorClass.INTEGRITY, "See LIST PRIVILEGES OF USER or OF ROLE."),
    Status(2000, "STORAGE_ERROR", ErrorClass.OPERATIONAL, "Check the node's log."),
    Status(1200, "UDF_LOAD_CLASS_ERROR", ErrorClass.PROGRAMMING, "Install the package on every node, then restart it."),
    Status(1300, "CREATE_TRIGGER_ERROR", ErrorClass.INTEGRITY, "DROP the trigger first, or choose another name."),
    Status(1301, "DROP_TRIGGER_ERROR", ErrorClass.INTEGRITY, "See SHOW TRIGGERS."),
    Status(1302, "TRIGGER_FIRE_ERROR", ErrorClass.DATA, "A trigger rejected the rows: see why, or ask its author."),
    Status(
        1303, "TRIGGER_LOAD_CLASS_ERROR", ErrorClass.PROGRAMMING, "Install the package on every node, then restart it."
    ),
    Status(1400, "NO_SUCH_CQ", ErrorClass.INTEGRITY, "See SHOW CONTINUOUS QUERIES."),
    Status(1402, "CQ_ALREADY_EXIST", ErrorClass.INTEGRITY, "DROP the continuous query first, or choose another name."),
    Status(2001, "INTERNAL_ERROR", ErrorClass.INTERNAL, "This is a bug in Saros: please report it with the message."),
    Status(2002, "NOT_SUPPORTED_YET", ErrorClass.NOT_SUPPORTED, "The statement is not implemented yet."),
    Status(2003, "INVALID_PARAMETER", ErrorClass.PROGRAMMING, "Correct the call as the message says."),
    Status(2004, "INVALID_CONFIGURATION", ErrorClass.PROGRAMMING, "Correct the named option."),
    Status(2005, "WINDOW_LIMIT_EXCEEDED", ErrorClass.PROGRAMMING, "Use larger windows or a shorter range."),
    Status(2006, "STATEMENT_TOO_LARGE", ErrorClass.PROGRAMMING, "Split the statement, or use the columnar insert."),
    Status(2007, "TIME_OUT_OF_RANGE", ErrorClass.DATA, "Times are int64 in the instance's unit; check the unit."),
    Status(2008, "VALUE_OUT_OF_RANGE", ErrorClass.DATA, "The value does not fit the series' type."),
    Status(
        2010,
        "CORRUPT_FILE",
        ErrorClass.OPERATIONAL,
        "Restore it from a replica or backup; damaged data was set aside (a file to LOAD was only refused).",
    ),
    Status(2011, "UNSUPPORTED_FILE", ErrorClass.NOT_SUPPORTED, "Rewrite the file with a common encoding."),
    Status(
        2012,
        "FOLDER_IN_USE",
        ErrorClass.OPERATIONAL,
        "Stop the other process, connect to its server, or choose another folder.",
    ),
    Status(2013, "LOG_FAILED", ErrorClass.OPERATIONAL, "A disk write failed; check the disk and restart."),
    Status(2014, "CLOSED", ErrorClass.PROGRAMMING, "Open a new connection."),
    Status(
        2015, "FOLDER_VERSION", ErrorClass.OPERATIONAL, "Use the Saros version that wrote the folder, or a newer one."
    ),
    Status(
        2016,
        "NODE_UNREACHABLE",
        ErrorClass.OPERATIONAL,
        "A node does not answer; see SHOW CLUSTER, then try again.",
    ),
    Status(2017, "NO_LEADER", ErrorClass.OPERATIONAL, "Too few replicas of a group are up; try again when they are."),
    Status(2018, "OUTCOME_UNKNOWN", ErrorClass.OPERATIONAL, "The write may have happened: check it, or retry."),
    Status(2019, "WRONG_CLUSTER", ErrorClass.OPERATIONAL, "The node belongs to another cluster: check the addresses."),
    Status(
        2020,
        "PARTLY_DONE",
        ErrorClass.OPERATIONAL,
        "Some groups applied it, others did not: the message says which and why. It is safe to send it again.",
    ),
    Status(2021, "SCHEMA_CHANGED", ErrorClass.OPERATIONAL, "Series were dropped or altered meanwhile: try again."),
    Status(2022, "CLUSTER_CHANGING", ErrorClass.OPERATIONAL, "The cluster is changing: wait until it is done."),
    Status(2023, "NO_SUCH_NODE", ErrorClass.PROGRAMMING, "Name a node of the cluster; see SHOW CLUSTER."),
    Status(2024, "TOO_FEW_NODES", ErrorClass.PROGRAMMING, "There must be as many nodes as replicas: add one."),
    Status(2025, "CHANGE_TOO_FAR", ErrorClass.OPERATIONAL, "The change can no longer be aborted; let it finish."),
    Status(2026, "SLOTS_MOVED", ErrorClass.OPERATIONAL, "Data moved to other nodes meanwhile: run it again."),
    Status(2027, "LOAD_LOST", ErrorClass.OPERATIONAL, "Parts of a file were lost in transit: LOAD it again."),
    Status(2030, "READ_LOST", ErrorClass.OPERATIONAL, "A node dropped its part of the query: run it again."),
    Status(
        2031,
        "TOO_MANY_READS",
        ErrorClass.OPERATIONAL,
        "A node serves too many queries; try later.",
    ),
    Status(2032, "READ_POINT_GONE", ErrorClass.OPERATIONAL, "The read point no longer exists: hold a new one."),
    Status(
        2033,
        "QUERIES_MEMORY_EXCEEDED",
        ErrorClass.OPERATIONAL,
        "Try again when fewer queries run, narrow it, or raise queries_memory_bytes.",
    ),
    Status(
        2034, "TOO_MANY_CLIENTS", ErrorClass.OPERATIONAL, "Close connections that are not used, or try again later."
    ),
    Status(
        2040,
        "PASSWORD_MUST_CHANGE",
        ErrorClass.PROGRAMMING,
        "Set your own password: ALTER USER name SET PASSWORD 'password'.",
    ),
    Status(2041, "WEAK_PASSWORD", ErrorClass.DATA, "Use at least 12 characters, and not the user's name."),
    Status(2042, "NO_SUCH_TOKEN", ErrorClass.INTEGRITY, "See SHOW TOKENS."),
    Status(2043, "TOKEN_EXISTS", ErrorClass.INTEGRITY, "DROP the token first, or choose another name."),
    Status(2044, "BAD_LINE", ErrorClass.DATA, "Correct the lines that the message names; the others are written."),
    Status(
        2050,
        "FILE_NOT_ALLOWED",
        ErrorClass.PROGRAMMING,
        "Put the file under one of the server's load_folders, or configure one.",
    ),
    Status(2051, "FILE_NOT_READABLE", ErrorClass.PROGRAMMING, "Check the path: the database's process opens it."),
    Status(2052, "NO_SUCH_BACKUP", ErrorClass.PROGRAMMING, "Run saros backup list DIR."),
    Status(2053, "FOLDER_NOT_EMPTY", ErrorClass.PROGRAMMING, "Restore to a new or empty folder."),
    Status(2060, "ROUND_REFUSED", ErrorClass.PROGRAMMING, "Read the message; a new round may succeed."),
    Status(2061, "SENT_ELSEWHERE", ErrorClass.PROGRAMMING, "Change the device at its sender."),
    Status(2062, "NO_SUCH_SENDER", ErrorClass.PROGRAMMING, "See SHOW SENDERS."),
    Status(2063, "NO_SUCH_RECEIVER", ErrorClass.PROGRAMMING, "Check saros sync status, or saros sync add-receiver."),
    Status(2064, "NOTES_CHANGED", ErrorClass.OPERATIONAL, "Try again."),
    Status(2065, "ROUND_NOT_IN_HAND", ErrorClass.OPERATIONAL, "Restart the round: what has arrived is not sent again."),
    Status(2080, "FUNCTION_FAILED", ErrorClass.PROGRAMMING, "User-written code failed: show its author the message."),
    Status(2081, "FUNCTION_EXISTS", ErrorClass.INTEGRITY, "DROP the function first, or choose another name."),
    Status(2082, "NO_SUCH_FUNCTION", ErrorClass.INTEGRITY, "See SHOW FUNCTIONS."),
    Status(2070, "UPLOAD_REFUSED", ErrorClass.PROGRAMMING, "Read the message; rerunning the job may succeed."),
)

STATUS: dict[int, Status] = {row.code: row for row in _ROWS}


def status_of(code: int) -> Status:
    """Return the table's row for a code, or the row of INTERNAL_ERROR if the code is unknown."""
    return STATUS.get(code, STATUS[2001])
