"""Statements other than SELECT and SHOW.

writing, batches, select_into                writes of rows: INSERT, batches of columns, SELECT INTO
device_kinds                                 rows of many devices, resolved by kind of device
grouped_writes                               concurrent writes of several threads as one call
load_statement                               LOAD
schema_statements, ddl, alter_series         databases, series, templates
view_statements, view_writes                 views; writes through views
extension_statements                         functions and triggers
user_statements                              users, roles, privileges, tokens
cluster_statements, sync_statements          nodes; the sync tool
"""
