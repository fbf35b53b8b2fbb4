"""The cluster as one database, as the engine sees it.

database             the facade
write_coordinator    tablets as entries of the groups' logs
schema_coordinator   creating databases and series; changes sent to all groups
drop_coordinator     drops; retries after drops or moves of slots
load_coordinator     LOAD: the parts of a file into the groups of their slices
read_views           reads at three consistency levels
read_index           the index that a strong read must see, for each group
partial_failure      the error for a request that only some of its groups applied
write_failure        the written and the missing rows of a write that failed in this way
synced_devices       devices that `saros sync` mirrors from a sender
cluster_directory    users and roles of a cluster
"""
