"""Checkpoints: the content of a region at one moment, as files that are not removed while they are copied.

    checkpoint          the values, their guarantees, and their encoding
    registry            checkpoints on lease: hard links, removed on release, expiry, or a new start of the process
    checkpoint_set      all checkpoints of one backup
    fetch               a checkpoint's partitions, fetched piece by piece into a folder
    partition_import    installs fetched partitions

Backups, Raft snapshots and the moving of slots all use checkpoints.
"""
