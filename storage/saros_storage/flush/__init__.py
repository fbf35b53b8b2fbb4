"""Flushing in the background: frozen MemTables become files, loaded files are adopted, the log is truncated.

flusher        the thread: order of flushes, memory limits, errors of the disk
pacer          rests of flushes that can wait
contended_lock the lock of the folders, which those flushes release soon when others want it
file_ingest    links a loaded file into its partition
"""
