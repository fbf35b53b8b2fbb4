"""Captures: the content of a region at one moment, as files that remain while somebody copies them.

    capture    what is taken, and what that promises: types, and their bytes
    shelf      captures on lease: hard links that go when they are let go, forgotten, or the process is new
    frozen     all captures that one backup is made of
    pulling    a capture's partitions, fetched piece by piece into a folder

Backups, Raft snapshots and the moving of slots all use these captures.
"""
