from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OpenRequest(_message.Message):
    __slots__ = ("time_zone", "client", "user", "password", "consistency", "client_id", "partial_results")
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    CONSISTENCY_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_RESULTS_FIELD_NUMBER: _ClassVar[int]
    time_zone: str
    client: str
    user: str
    password: str
    consistency: str
    client_id: int
    partial_results: bool
    def __init__(self, time_zone: _Optional[str] = ..., client: _Optional[str] = ..., user: _Optional[str] = ..., password: _Optional[str] = ..., consistency: _Optional[str] = ..., client_id: _Optional[int] = ..., partial_results: bool = ...) -> None: ...

class OpenReply(_message.Message):
    __slots__ = ("session", "time_unit", "server", "addresses", "memory")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIT_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    session: bytes
    time_unit: str
    server: str
    addresses: _containers.RepeatedScalarFieldContainer[str]
    memory: int
    def __init__(self, session: _Optional[bytes] = ..., time_unit: _Optional[str] = ..., server: _Optional[str] = ..., addresses: _Optional[_Iterable[str]] = ..., memory: _Optional[int] = ...) -> None: ...

class ErrorReply(_message.Message):
    __slots__ = ("code", "message", "partial_write")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_WRITE_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    partial_write: PartialWrite
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., partial_write: _Optional[_Union[PartialWrite, _Mapping]] = ...) -> None: ...

class PingReply(_message.Message):
    __slots__ = ("server", "uptime_ms", "sessions", "queries", "problems")
    SERVER_FIELD_NUMBER: _ClassVar[int]
    UPTIME_MS_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    server: str
    uptime_ms: int
    sessions: int
    queries: int
    problems: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, server: _Optional[str] = ..., uptime_ms: _Optional[int] = ..., sessions: _Optional[int] = ..., queries: _Optional[int] = ..., problems: _Optional[_Iterable[str]] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("null", "boolean", "integer", "number", "text", "blob", "instant_ns", "local_time", "decimal")
    NULL_FIELD_NUMBER: _ClassVar[int]
    BOOLEAN_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    BLOB_FIELD_NUMBER: _ClassVar[int]
    INSTANT_NS_FIELD_NUMBER: _ClassVar[int]
    LOCAL_TIME_FIELD_NUMBER: _ClassVar[int]
    DECIMAL_FIELD_NUMBER: _ClassVar[int]
    null: bool
    boolean: bool
    integer: int
    number: float
    text: str
    blob: bytes
    instant_ns: int
    local_time: str
    decimal: str
    def __init__(self, null: bool = ..., boolean: bool = ..., integer: _Optional[int] = ..., number: _Optional[float] = ..., text: _Optional[str] = ..., blob: _Optional[bytes] = ..., instant_ns: _Optional[int] = ..., local_time: _Optional[str] = ..., decimal: _Optional[str] = ...) -> None: ...

class ExecuteRequest(_message.Message):
    __slots__ = ("statement", "parameters", "timeout_ms", "sequence", "shown", "read_point")
    class ShownEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SHOWN_FIELD_NUMBER: _ClassVar[int]
    READ_POINT_FIELD_NUMBER: _ClassVar[int]
    statement: str
    parameters: _containers.RepeatedCompositeFieldContainer[Value]
    timeout_ms: int
    sequence: int
    shown: _containers.ScalarMap[int, int]
    read_point: ReadPoint
    def __init__(self, statement: _Optional[str] = ..., parameters: _Optional[_Iterable[_Union[Value, _Mapping]]] = ..., timeout_ms: _Optional[int] = ..., sequence: _Optional[int] = ..., shown: _Optional[_Mapping[int, int]] = ..., read_point: _Optional[_Union[ReadPoint, _Mapping]] = ...) -> None: ...

class ReadPoint(_message.Message):
    __slots__ = ("name", "instance")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    instance: int
    def __init__(self, name: _Optional[str] = ..., instance: _Optional[int] = ...) -> None: ...

class ResultHead(_message.Message):
    __slots__ = ("query_id", "schema", "type_names", "update_count", "stale", "missing")
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    TYPE_NAMES_FIELD_NUMBER: _ClassVar[int]
    UPDATE_COUNT_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    query_id: str
    schema: bytes
    type_names: _containers.RepeatedScalarFieldContainer[str]
    update_count: int
    stale: bool
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, query_id: _Optional[str] = ..., schema: _Optional[bytes] = ..., type_names: _Optional[_Iterable[str]] = ..., update_count: _Optional[int] = ..., stale: bool = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("head", "batch_bytes", "end")
    HEAD_FIELD_NUMBER: _ClassVar[int]
    BATCH_BYTES_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    head: ResultHead
    batch_bytes: _containers.RepeatedScalarFieldContainer[int]
    end: ResultEnd
    def __init__(self, head: _Optional[_Union[ResultHead, _Mapping]] = ..., batch_bytes: _Optional[_Iterable[int]] = ..., end: _Optional[_Union[ResultEnd, _Mapping]] = ...) -> None: ...

class ResultEnd(_message.Message):
    __slots__ = ("stale", "shown", "missing")
    class ShownEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    STALE_FIELD_NUMBER: _ClassVar[int]
    SHOWN_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    stale: bool
    shown: _containers.ScalarMap[int, int]
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, stale: bool = ..., shown: _Optional[_Mapping[int, int]] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class InsertReply(_message.Message):
    __slots__ = ("points", "leader")
    POINTS_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    points: int
    leader: str
    def __init__(self, points: _Optional[int] = ..., leader: _Optional[str] = ...) -> None: ...

class InsertRowsRequest(_message.Message):
    __slots__ = ("sequence", "aligned", "devices", "counts")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ALIGNED_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    aligned: bool
    devices: _containers.RepeatedScalarFieldContainer[str]
    counts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, sequence: _Optional[int] = ..., aligned: bool = ..., devices: _Optional[_Iterable[str]] = ..., counts: _Optional[_Iterable[int]] = ...) -> None: ...

class InsertRowsReply(_message.Message):
    __slots__ = ("points", "refused")
    POINTS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    points: int
    refused: _containers.RepeatedCompositeFieldContainer[RefusedRows]
    def __init__(self, points: _Optional[int] = ..., refused: _Optional[_Iterable[_Union[RefusedRows, _Mapping]]] = ...) -> None: ...

class RefusedRows(_message.Message):
    __slots__ = ("device", "error")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    device: int
    error: ErrorReply
    def __init__(self, device: _Optional[int] = ..., error: _Optional[_Union[ErrorReply, _Mapping]] = ...) -> None: ...

class WriteLinesRequest(_message.Message):
    __slots__ = ("database", "precision", "time_ns", "template")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    TIME_NS_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    database: str
    precision: str
    time_ns: int
    template: str
    def __init__(self, database: _Optional[str] = ..., precision: _Optional[str] = ..., time_ns: _Optional[int] = ..., template: _Optional[str] = ...) -> None: ...

class WriteLinesReply(_message.Message):
    __slots__ = ("points", "problems", "problem_count", "codes")
    POINTS_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_COUNT_FIELD_NUMBER: _ClassVar[int]
    CODES_FIELD_NUMBER: _ClassVar[int]
    points: int
    problems: _containers.RepeatedScalarFieldContainer[str]
    problem_count: int
    codes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, points: _Optional[int] = ..., problems: _Optional[_Iterable[str]] = ..., problem_count: _Optional[int] = ..., codes: _Optional[_Iterable[int]] = ...) -> None: ...

class RowRanges(_message.Message):
    __slots__ = ("device", "starts", "ends")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    STARTS_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    device: str
    starts: _containers.RepeatedScalarFieldContainer[int]
    ends: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, device: _Optional[str] = ..., starts: _Optional[_Iterable[int]] = ..., ends: _Optional[_Iterable[int]] = ...) -> None: ...

class PartialWrite(_message.Message):
    __slots__ = ("written", "missing", "final")
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    written: _containers.RepeatedCompositeFieldContainer[RowRanges]
    missing: _containers.RepeatedCompositeFieldContainer[RowRanges]
    final: bool
    def __init__(self, written: _Optional[_Iterable[_Union[RowRanges, _Mapping]]] = ..., missing: _Optional[_Iterable[_Union[RowRanges, _Mapping]]] = ..., final: bool = ...) -> None: ...

class CreateCheckpointRequest(_message.Message):
    __slots__ = ("since",)
    SINCE_FIELD_NUMBER: _ClassVar[int]
    since: int
    def __init__(self, since: _Optional[int] = ...) -> None: ...

class ReadCheckpointRequest(_message.Message):
    __slots__ = ("capture", "number", "offset")
    CAPTURE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    capture: bytes
    number: int
    offset: int
    def __init__(self, capture: _Optional[bytes] = ..., number: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class HoldRequest(_message.Message):
    __slots__ = ("lease_ms", "read_point")
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    READ_POINT_FIELD_NUMBER: _ClassVar[int]
    lease_ms: int
    read_point: ReadPoint
    def __init__(self, lease_ms: _Optional[int] = ..., read_point: _Optional[_Union[ReadPoint, _Mapping]] = ...) -> None: ...

class HoldReply(_message.Message):
    __slots__ = ("instance",)
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    instance: int
    def __init__(self, instance: _Optional[int] = ...) -> None: ...

class UploadRequest(_message.Message):
    __slots__ = ("job", "name", "offset", "crc32", "size")
    JOB_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    CRC32_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    job: str
    name: str
    offset: int
    crc32: int
    size: int
    def __init__(self, job: _Optional[str] = ..., name: _Optional[str] = ..., offset: _Optional[int] = ..., crc32: _Optional[int] = ..., size: _Optional[int] = ...) -> None: ...

class UploadReply(_message.Message):
    __slots__ = ("have", "path")
    HAVE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    have: int
    path: str
    def __init__(self, have: _Optional[int] = ..., path: _Optional[str] = ...) -> None: ...

class DiscardUploadsRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class ReleaseCheckpointsRequest(_message.Message):
    __slots__ = ("captures",)
    CAPTURES_FIELD_NUMBER: _ClassVar[int]
    captures: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, captures: _Optional[_Iterable[bytes]] = ...) -> None: ...

class SyncBeginRequest(_message.Message):
    __slots__ = ("sender", "name", "number", "sha256", "size")
    SENDER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    sender: str
    name: str
    number: int
    sha256: str
    size: int
    def __init__(self, sender: _Optional[str] = ..., name: _Optional[str] = ..., number: _Optional[int] = ..., sha256: _Optional[str] = ..., size: _Optional[int] = ...) -> None: ...

class SyncContent(_message.Message):
    __slots__ = ("sha256", "size", "have")
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    HAVE_FIELD_NUMBER: _ClassVar[int]
    sha256: str
    size: int
    have: int
    def __init__(self, sha256: _Optional[str] = ..., size: _Optional[int] = ..., have: _Optional[int] = ...) -> None: ...

class SyncConflict(_message.Message):
    __slots__ = ("device", "owner", "reason")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    device: str
    owner: str
    reason: str
    def __init__(self, device: _Optional[str] = ..., owner: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class SyncReply(_message.Message):
    __slots__ = ("standing", "last", "wants", "conflicts")
    STANDING_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    WANTS_FIELD_NUMBER: _ClassVar[int]
    CONFLICTS_FIELD_NUMBER: _ClassVar[int]
    standing: str
    last: int
    wants: _containers.RepeatedCompositeFieldContainer[SyncContent]
    conflicts: _containers.RepeatedCompositeFieldContainer[SyncConflict]
    def __init__(self, standing: _Optional[str] = ..., last: _Optional[int] = ..., wants: _Optional[_Iterable[_Union[SyncContent, _Mapping]]] = ..., conflicts: _Optional[_Iterable[_Union[SyncConflict, _Mapping]]] = ...) -> None: ...

class SyncChunkRequest(_message.Message):
    __slots__ = ("sender", "number", "sha256", "offset", "crc32")
    SENDER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    CRC32_FIELD_NUMBER: _ClassVar[int]
    sender: str
    number: int
    sha256: str
    offset: int
    crc32: int
    def __init__(self, sender: _Optional[str] = ..., number: _Optional[int] = ..., sha256: _Optional[str] = ..., offset: _Optional[int] = ..., crc32: _Optional[int] = ...) -> None: ...

class SyncChunkReply(_message.Message):
    __slots__ = ("have",)
    HAVE_FIELD_NUMBER: _ClassVar[int]
    have: int
    def __init__(self, have: _Optional[int] = ...) -> None: ...

class SyncCommitRequest(_message.Message):
    __slots__ = ("sender", "number")
    SENDER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    sender: str
    number: int
    def __init__(self, sender: _Optional[str] = ..., number: _Optional[int] = ...) -> None: ...
