"""Statements other than SELECT, SHOW and INSERT.

select_into                                  SELECT INTO
load_statement                               LOAD
schema_statements, ddl, alter_series         databases, series, templates
view_statements                              views
extension_statements                         functions and triggers
user_statements                              users, roles, privileges, tokens
cluster_statements, sync_statements          nodes; the sync tool
"""
