"""A data group's state: a region of storage, driven by the group's log.

command             entries as bytes
region_apply        the state machine: applies entries to the region
replica             the node's copy of a group
entry_validation    decides an entry's outcome
applied_requests    requests that were carried out; applied_ranges: their numbers, compactly
ownership           slots that the group owns; slot_transfer, schema_transfer: slots that arrive and leave
schema_feed         changes of the schema for other nodes; schema_delta: one of them
log_shipped_files   files that come in pieces through the log
drops               drops that the group has carried out
snapshots, state_file     snapshots for members that lag; the file that holds the state
"""
