"""The table of calls: for each method's name, the arguments, the function, and the answer to a failed call.

This is the only list of all calls; `protocol` looks methods up in it. Pure data: any thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from saros_server.thrift import metadata, queries, sessions, structs, writes
from saros_server.thrift.queries import in_blocks, in_data_set
from saros_server.thrift.sessions import ThriftSession
from saros_server.thrift.structs import ExecuteAnswer, FetchAnswer, Status


class Method(msgspec.Struct, frozen=True):
    """A method of the protocol."""

    #: The struct that the call's arguments form: the request, or all arguments if the call is `bare`.
    arguments: type[Any]
    run: Callable[[ThriftSession, Any], object]
    #: Creates the answer to a failed call from its status. None if answers have no status: a failure is then reported
    #: as an error of the protocol.
    answer: Callable[[Status], object] | None
    #: The arguments are not wrapped in a request.
    bare: bool = False


def _status(status: Status) -> Status:
    return status


METHODS: dict[str, Method] = {
    "openSession": Method(structs.OpenSession, sessions.open_session, structs.OpenSessionAnswer),
    "closeSession": Method(structs.CloseSession, sessions.close_session, _status),
    "requestStatementId": Method(structs.SessionArguments, sessions.request_statement_id, None, bare=True),
    "getTimeZone": Method(
        structs.SessionArguments,
        sessions.get_time_zone,
        lambda status: structs.TimeZoneAnswer(status, ""),
        bare=True,
    ),
    "setTimeZone": Method(structs.SetTimeZone, sessions.set_time_zone, _status),
    "getProperties": Method(structs.NoArguments, sessions.get_properties, None, bare=True),
    "testConnectionEmptyRPC": Method(structs.NoArguments, sessions.answer_empty_call, _status, bare=True),
    "executeStatementV2": Method(structs.ExecuteStatement, in_blocks(queries.execute_statement), ExecuteAnswer),
    "executeQueryStatementV2": Method(structs.ExecuteStatement, in_blocks(queries.execute_statement), ExecuteAnswer),
    "executeUpdateStatementV2": Method(structs.ExecuteStatement, queries.execute_update, ExecuteAnswer),
    "executeUpdateStatement": Method(structs.ExecuteStatement, queries.execute_update, ExecuteAnswer),
    "executeBatchStatement": Method(structs.ExecuteBatch, queries.execute_batch, _status),
    "executeRawDataQueryV2": Method(structs.RawDataQuery, in_blocks(queries.raw_data_query), ExecuteAnswer),
    "executeLastDataQueryV2": Method(structs.LastDataQuery, in_blocks(queries.last_data_query), ExecuteAnswer),
    "executeFastLastDataQueryForOneDeviceV2": Method(
        structs.FastLastOfDevice, in_blocks(queries.fast_last_of_device), ExecuteAnswer
    ),
    "executeFastLastDataQueryForOnePrefixPath": Method(
        structs.FastLastOfPrefix, in_blocks(queries.fast_last_of_prefix), ExecuteAnswer
    ),
    "executeAggregationQueryV2": Method(structs.AggregationQuery, in_blocks(queries.aggregation_query), ExecuteAnswer),
    "fetchResultsV2": Method(structs.FetchResults, queries.fetch_blocks, FetchAnswer),
    "cancelOperation": Method(structs.CancelOperation, queries.cancel_operation, _status),
    "closeOperation": Method(structs.CloseOperation, queries.close_operation, _status),
    "executeStatement": Method(structs.ExecuteStatement, in_data_set(queries.execute_statement), ExecuteAnswer),
    "executeQueryStatement": Method(structs.ExecuteStatement, in_data_set(queries.execute_statement), ExecuteAnswer),
    "executeRawDataQuery": Method(structs.RawDataQuery, in_data_set(queries.raw_data_query), ExecuteAnswer),
    "executeLastDataQuery": Method(structs.LastDataQuery, in_data_set(queries.last_data_query), ExecuteAnswer),
    "executeAggregationQuery": Method(structs.AggregationQuery, in_data_set(queries.aggregation_query), ExecuteAnswer),
    "fetchResults": Method(structs.FetchResults, queries.fetch_data_set, FetchAnswer),
    "setStorageGroup": Method(structs.SetStorageGroup, metadata.create_database, _status, bare=True),
    "deleteStorageGroups": Method(structs.Paths, metadata.delete_databases, _status, bare=True),
    "createTimeseries": Method(structs.CreateTimeseries, metadata.create_timeseries, _status),
    "createAlignedTimeseries": Method(structs.CreateAlignedTimeseries, metadata.create_aligned_timeseries, _status),
    "createMultiTimeseries": Method(structs.CreateMultiTimeseries, metadata.create_multi_timeseries, _status),
    "deleteTimeseries": Method(structs.Paths, metadata.delete_timeseries, _status, bare=True),
    "deleteData": Method(structs.DeleteData, metadata.delete_data, _status),
    "createSchemaTemplate": Method(structs.CreateTemplate, metadata.create_template, _status),
    "appendSchemaTemplate": Method(structs.AppendTemplate, metadata.append_template, _status),
    "pruneSchemaTemplate": Method(structs.PruneTemplate, metadata.prune_template, _status),
    "querySchemaTemplate": Method(structs.QueryTemplate, metadata.query_template, structs.QueryTemplateAnswer),
    "setSchemaTemplate": Method(structs.SetTemplate, metadata.set_template, _status),
    "unsetSchemaTemplate": Method(structs.UnsetTemplate, metadata.unset_template, _status),
    "dropSchemaTemplate": Method(structs.DropTemplate, metadata.drop_template, _status),
    "createTimeseriesUsingSchemaTemplate": Method(structs.ActivateTemplate, metadata.activate_template, _status),
    "insertTablet": Method(structs.InsertTablet, writes.insert_tablet, _status),
    "insertTablets": Method(structs.InsertTablets, writes.insert_tablets, _status),
    "insertRecord": Method(structs.InsertRecord, writes.insert_record, _status),
    "insertRecords": Method(structs.InsertRecords, writes.insert_records, _status),
    "insertRecordsOfOneDevice": Method(structs.InsertRecordsOfOneDevice, writes.insert_records_of_one_device, _status),
    "insertStringRecord": Method(structs.InsertStringRecord, writes.insert_string_record, _status),
    "insertStringRecords": Method(structs.InsertStringRecords, writes.insert_string_records, _status),
    "insertStringRecordsOfOneDevice": Method(
        structs.InsertStringRecordsOfOneDevice, writes.insert_string_records_of_one_device, _status
    ),
    "testInsertTablet": Method(structs.InsertTablet, writes.accept, _status),
    "testInsertTablets": Method(structs.InsertTablets, writes.accept, _status),
    "testInsertRecord": Method(structs.InsertRecord, writes.accept, _status),
    "testInsertRecords": Method(structs.InsertRecords, writes.accept, _status),
    "testInsertRecordsOfOneDevice": Method(structs.InsertRecordsOfOneDevice, writes.accept, _status),
    "testInsertStringRecord": Method(structs.InsertStringRecord, writes.accept, _status),
    "testInsertStringRecords": Method(structs.InsertStringRecords, writes.accept, _status),
    "testInsertStringRecordsOfOneDevice": Method(structs.InsertStringRecordsOfOneDevice, writes.accept, _status),
}
