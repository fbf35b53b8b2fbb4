"""Compaction: merges files of a partition into fewer, without overlaps and without deleted points.

picker       which files to merge next: pure
merging      one job: sources in, temporary files out; whole chunks are copied, what overlaps is merged
throttle     how fast a job may go: pure
garbage_estimate, tombstone_gc     which files hold dead points; which tombstones hide nothing: pure
swap         a job's files take the place of its sources: manifest, partition, folder
compactor    the thread: schedule, requests (`MERGE`), limits, back-off, counters
"""
