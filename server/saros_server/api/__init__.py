"""The client API, independent of protocols: sessions, statements, inserts, results, errors.

session            embedded sessions: execute, insert, freeze
client_sessions    sessions of remote clients, by token
arrow              blocks and columns to and from Arrow
insert_request     columnar inserts as messages
insert_batching    inserts of several sessions in one call
result_cursors     remainders of results, kept until the client fetches them
errors             how a failed call is reported
"""
