"""Background flushes: frozen MemTables become files, loaded files are adopted, the log is truncated.

Modules:

    flusher          the thread: order of flushes, memory limits, disk errors
    pacer            pauses of flushes that can wait
    contended_lock   the lock of the partition folders; no flush pauses while another thread waits for it
    file_ingest      links a loaded file into its partition
"""
