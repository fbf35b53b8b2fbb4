"""The state of a data group: a region of storage, to which the entries of the group's log are applied.

command             entries as bytes
region_apply        the state machine: applies entries to the region
replica             the node's copy of a group
entry_validation    decides an entry's outcome
applied_requests    requests that took effect; applied_ranges: a compact form of their numbers
ownership           slots that the group owns; slot_transfer, schema_transfer: slots that arrive and leave
schema_feed         changes of the schema for other nodes; schema_delta: one such change
log_shipped_files   files that come in pieces through the log
drops               drops that the group has applied
snapshots, state_file     snapshots for members that lag; the file that holds the state
"""
