"""Checkpoints: the content of a region at one moment, as files that remain while somebody copies them.

    checkpoint          the values, what they promise, and their bytes
    registry            checkpoints on lease: hard links that go when they are released, expired, or the process is new
    checkpoint_set      all checkpoints of one backup
    fetch               a checkpoint's partitions, fetched piece by piece into a folder
    partition_import    installs fetched partitions

Backups, Raft snapshots and the moving of slots all use checkpoints.
"""
