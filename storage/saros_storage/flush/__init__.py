"""Flushing in the background: frozen MemTables become files, loaded files are adopted, the log is truncated.

flusher        the thread: order of flushes, memory limits, errors of the disk
file_ingest    links a loaded file into its partition
"""
