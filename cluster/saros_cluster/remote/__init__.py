"""Reads series that are stored on other nodes, with the same interface as series of this node.

remote_reader          a reader on another node        reader_service     the server side
routed_view            a view over local and remote replicas
messages, fields, codec    requests and replies, and their bytes
reader_open            opening a reader                partial_aggregation    aggregates before they are sent
migration_source(s)    reads of slots whose data has not arrived yet
errors                 exceptions, as they travel
"""
