"""Compaction merges files of a partition into fewer files without overlaps and without deleted points.

picker       which files to merge next: pure
merging      one job: sources in, temporary files out; lone chunks are copied, overlapping ones merged
throttle     the speed of a job: pure
garbage_estimate, tombstone_gc     which files contain dead points; which tombstones hide nothing: pure
swap         replaces the sources of a job by its output files: in the manifest, the partition, the folder
compactor    the thread: schedule, requests (`MERGE`), limits, back-off, counters
"""
