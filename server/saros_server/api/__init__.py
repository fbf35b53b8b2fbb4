"""The client API, independent of protocols: sessions, statements, inserts, results, errors.

client_api         the entry: calls of remote clients, by operation and policy
operations         the operations, with their requests and answers
calls              policies, peers, and the values of a call
cancellation       tokens that protocols cancel when a client no longer waits
session            embedded sessions: execute, insert, checkpoints
client_sessions    sessions of remote clients, by token
executions         statements of remote clients, and results that are being sent
result_cursors     remainders of results, kept until the client fetches them
insert_request     inserts, as values or as Arrow IPC
arrow              blocks and columns to and from Arrow
errors             how a failed call is reported
"""
