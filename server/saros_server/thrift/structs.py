"""The structs of IoTDB's session protocol: requests, answers, statuses.

Field numbers and types are defined by IoTDB. The names of fields are not transmitted, so Saros uses names of its own
choice. Fields that IoTDB requires have no default. The arguments of a call are a struct as well: its request, or all of
them if it has several. Two kinds of fields are left out: fields of requests that servers may ignore, and fields of
answers that no client reads. Pure data: any thread.
"""

from __future__ import annotations

from saros_server.thrift.codec import I32, I64, Binary, Bool, Byte, Text, numbered, thrift_struct

# ---------------------------------------------------------------------------------------------- statuses


@thrift_struct
class EndPoint:
    """An address: TEndPoint."""

    ip: Text = ""
    port: I32 = 0


@thrift_struct
class Status:
    """The outcome of a call: TSStatus."""

    code: I32 = 200
    message: Text | None = None
    #: The statuses of the parts, if the code is MULTIPLE_ERROR.
    parts: list[Status] | None = None
    #: The node that the next write should go to.
    redirect: EndPoint | None = None


# ---------------------------------------------------------------------------------------------- sessions


@thrift_struct
class NoArguments:
    """The empty struct for calls without arguments."""


@thrift_struct
class SessionArguments:
    """The arguments of `requestStatementId`, `getTimeZone`."""

    session_id: I64 | None = None


@thrift_struct
class OpenSession:
    """TSOpenSessionReq."""

    client_protocol: I32 = 2
    zone: Text = ""
    user: Text = ""
    password: Text | None = None
    configuration: dict[Text, Text] | None = None


@thrift_struct
class OpenSessionAnswer:
    """TSOpenSessionResp."""

    status: Status
    server_protocol: I32 = 0
    session_id: I64 | None = None
    configuration: dict[Text, Text] | None = None


@thrift_struct
class CloseSession:
    """TSCloseSessionReq."""

    session_id: I64 | None = None


@thrift_struct
class SetTimeZone:
    """TSSetTimeZoneReq."""

    session_id: I64
    zone: Text


@thrift_struct
class TimeZoneAnswer:
    """TSGetTimeZoneResp."""

    status: Status
    zone: Text


@thrift_struct
class ServerProperties:
    """The properties of the server: ServerProperties."""

    version: Text
    aggregations: list[Text]
    time_unit: Text
    connections_max: I32
    frame_bytes_max: I32
    read_only: Bool
    build: Text | None = None
    logo: Text | None = None


# ---------------------------------------------------------------------------------------------- statements and queries


@thrift_struct
class ExecuteStatement:
    """TSExecuteStatementReq."""

    session_id: I64
    statement: Text
    statement_id: I64 | None = None
    fetch_size: I32 | None = None
    timeout_ms: I64 | None = None
    redirect: Bool | None = None
    jdbc: Bool | None = None


@thrift_struct
class ExecuteBatch:
    """TSExecuteBatchStatementReq."""

    session_id: I64
    statements: list[Text]


@thrift_struct
class RawDataQuery:
    """TSRawDataQueryReq."""

    session_id: I64
    paths: list[Text]
    fetch_size: I32 | None = None
    start: I64 = 0
    end: I64 = 0
    statement_id: I64 | None = None
    redirect: Bool | None = None
    jdbc: Bool | None = None
    timeout_ms: I64 | None = None
    legal_paths: Bool | None = None


@thrift_struct
class LastDataQuery:
    """TSLastDataQueryReq."""

    session_id: I64
    paths: list[Text]
    fetch_size: I32 | None = None
    time: I64 = 0
    statement_id: I64 | None = None
    redirect: Bool | None = None
    jdbc: Bool | None = None
    timeout_ms: I64 | None = None
    legal_paths: Bool | None = None


@thrift_struct
class FastLastOfPrefix:
    """TSFastLastDataQueryForOnePrefixPathReq."""

    session_id: I64
    prefix: list[Text]
    fetch_size: I32 | None = None
    statement_id: I64 | None = None
    redirect: Bool | None = None
    jdbc: Bool | None = None
    timeout_ms: I64 | None = None


@thrift_struct
class FastLastOfDevice:
    """TSFastLastDataQueryForOneDeviceReq."""

    session_id: I64
    database: Text
    device: Text
    measurements: list[Text]
    fetch_size: I32 | None = None
    statement_id: I64 | None = None
    redirect: Bool | None = None
    jdbc: Bool | None = None
    timeout_ms: I64 | None = None
    legal_paths: Bool | None = None


@thrift_struct
class AggregationQuery:
    """TSAggregationQueryReq. Aggregations are numbers of TAggregationType."""

    session_id: I64
    statement_id: I64
    paths: list[Text]
    aggregations: list[I32]
    start: I64 | None = None
    end: I64 | None = None
    interval: I64 | None = None
    step: I64 | None = None
    fetch_size: I32 | None = None
    timeout_ms: I64 | None = None
    legal_paths: Bool | None = None


@thrift_struct
class DataSet:
    """Rows in the format of IoTDB 0.13 (TSQueryDataSet), which the Python client of 1.3 still uses."""

    times: Binary
    #: The non-null values of each column.
    values: list[Binary]
    #: A bitmap of each column: a bit for each row, 1 for a value.
    present: list[Binary]


@thrift_struct
class ExecuteAnswer:
    """TSExecuteStatementResp: a status, and the beginning of a result if there is one."""

    status: Status
    query_id: I64 | None = None
    #: The names of the columns, without Time.
    columns: list[Text] | None = None
    ignore_time: Bool | None = numbered(5, default=None)
    types: list[Text] | None = None
    data_set: DataSet | None = None
    column_places: dict[Text, I32] | None = numbered(9, default=None)
    blocks: list[Binary] | None = numbered(13, default=None)
    more: Bool | None = None
    table_model: Bool | None = numbered(16, default=None)
    column_blocks: list[I32] | None = None


@thrift_struct
class FetchResults:
    """TSFetchResultsReq. Some clients swap the ids of session and statement."""

    session_id: I64
    statement: Text
    fetch_size: I32
    query_id: I64
    aligned: Bool
    timeout_ms: I64 | None = None
    statement_id: I64 | None = None


@thrift_struct
class FetchAnswer:
    """TSFetchResultsResp."""

    status: Status
    has_result: Bool = False
    aligned: Bool = True
    data_set: DataSet | None = None
    blocks: list[Binary] | None = numbered(6, default=None)
    more: Bool | None = None


@thrift_struct
class CancelOperation:
    """TSCancelOperationReq."""

    session_id: I64
    query_id: I64


@thrift_struct
class CloseOperation:
    """TSCloseOperationReq. Some clients swap the ids of session and statement."""

    session_id: I64
    query_id: I64 | None = None
    statement_id: I64 | None = None


# ---------------------------------------------------------------------------------------------- schema


@thrift_struct
class SetStorageGroup:
    """The arguments of `setStorageGroup`."""

    session_id: I64
    database: Text


@thrift_struct
class Paths:
    """The arguments of `deleteStorageGroups`, `deleteTimeseries`."""

    session_id: I64
    paths: list[Text]


@thrift_struct
class CreateTimeseries:
    """TSCreateTimeseriesReq. Types, encodings and compressors are IoTDB's numbers, here as in all structs."""

    session_id: I64
    path: Text
    type: I32
    encoding: I32
    compressor: I32
    properties: dict[Text, Text] | None = None
    tags: dict[Text, Text] | None = None
    attributes: dict[Text, Text] | None = None
    alias: Text | None = None


@thrift_struct
class CreateAlignedTimeseries:
    """TSCreateAlignedTimeseriesReq."""

    session_id: I64
    device: Text
    measurements: list[Text]
    types: list[I32]
    encodings: list[I32]
    compressors: list[I32]
    aliases: list[Text] | None = None
    tags: list[dict[Text, Text]] | None = None
    attributes: list[dict[Text, Text]] | None = None


@thrift_struct
class CreateMultiTimeseries:
    """TSCreateMultiTimeseriesReq."""

    session_id: I64
    paths: list[Text]
    types: list[I32]
    encodings: list[I32]
    compressors: list[I32]
    properties: list[dict[Text, Text]] | None = None
    tags: list[dict[Text, Text]] | None = None
    attributes: list[dict[Text, Text]] | None = None
    aliases: list[Text] | None = None


@thrift_struct
class DeleteData:
    """TSDeleteDataReq."""

    session_id: I64
    paths: list[Text]
    start: I64
    end: I64


@thrift_struct
class CreateTemplate:
    """TSCreateSchemaTemplateReq."""

    session_id: I64
    name: Text
    serialized: Binary


@thrift_struct
class AppendTemplate:
    """TSAppendSchemaTemplateReq."""

    session_id: I64
    name: Text
    aligned: Bool
    measurements: list[Text]
    types: list[I32]
    encodings: list[I32]
    compressors: list[I32]


@thrift_struct
class PruneTemplate:
    """TSPruneSchemaTemplateReq."""

    session_id: I64
    name: Text
    path: Text


@thrift_struct
class QueryTemplate:
    """TSQueryTemplateReq."""

    session_id: I64
    name: Text
    kind: I32
    measurement: Text | None = None


@thrift_struct
class QueryTemplateAnswer:
    """TSQueryTemplateResp."""

    status: Status
    kind: I32 = 0
    result: Bool | None = None
    count: I32 | None = None
    measurements: list[Text] | None = None


@thrift_struct
class SetTemplate:
    """TSSetSchemaTemplateReq."""

    session_id: I64
    name: Text
    path: Text


@thrift_struct
class UnsetTemplate:
    """TSUnsetSchemaTemplateReq."""

    session_id: I64
    path: Text
    name: Text


@thrift_struct
class DropTemplate:
    """TSDropSchemaTemplateReq."""

    session_id: I64
    name: Text


@thrift_struct
class ActivateTemplate:
    """TCreateTimeseriesUsingSchemaTemplateReq."""

    session_id: I64
    devices: list[Text]


# ---------------------------------------------------------------------------------------------- writes


@thrift_struct
class InsertRecord:
    """TSInsertRecordReq: a type byte and a big-endian value for each measurement."""

    session_id: I64
    device: Text
    measurements: list[Text]
    values: Binary
    time: I64
    aligned: Bool | None = None
    to_table: Bool | None = None
    column_categories: list[Byte] | None = None


@thrift_struct
class InsertStringRecord:
    """TSInsertStringRecordReq."""

    session_id: I64
    device: Text
    measurements: list[Text]
    values: list[Text]
    time: I64
    aligned: Bool | None = None
    timeout_ms: I64 | None = None


@thrift_struct
class InsertTablet:
    """TSInsertTabletReq: values column by column, then for each column a flag and, if set, a bitmap of nulls."""

    session_id: I64
    device: Text
    measurements: list[Text]
    values: Binary
    #: int64, big-endian, unless the columns are encoded.
    times: Binary
    types: list[I32]
    rows: I32
    aligned: Bool | None = None
    to_table: Bool | None = None
    column_categories: list[Byte] | None = None
    compressed: Bool | None = None
    encodings: list[Byte] | None = None
    compressor: Byte | None = None


@thrift_struct
class InsertTablets:
    """TSInsertTabletsReq: one entry of each list for each tablet."""

    session_id: I64
    devices: list[Text]
    measurements: list[list[Text]]
    values: list[Binary]
    times: list[Binary]
    types: list[list[I32]]
    rows: list[I32]
    aligned: Bool | None = None


@thrift_struct
class InsertRecords:
    """TSInsertRecordsReq: one entry of each list for each record."""

    session_id: I64
    devices: list[Text]
    measurements: list[list[Text]]
    values: list[Binary]
    times: list[I64]
    aligned: Bool | None = None


@thrift_struct
class InsertRecordsOfOneDevice:
    """TSInsertRecordsOfOneDeviceReq."""

    session_id: I64
    device: Text
    measurements: list[list[Text]]
    values: list[Binary]
    times: list[I64]
    aligned: Bool | None = None


@thrift_struct
class InsertStringRecords:
    """TSInsertStringRecordsReq."""

    session_id: I64
    devices: list[Text]
    measurements: list[list[Text]]
    values: list[list[Text]]
    times: list[I64]
    aligned: Bool | None = None


@thrift_struct
class InsertStringRecordsOfOneDevice:
    """TSInsertStringRecordsOfOneDeviceReq."""

    session_id: I64
    device: Text
    measurements: list[list[Text]]
    values: list[list[Text]]
    times: list[I64]
    aligned: Bool | None = None
