"""Types, paths, TsFiles, the log, MemTables, partitions, the schema tree, series readers.

Public: the modules of each package that other rooms (top-level packages of the repository) may import. `*` means all
modules of the package, `(package)` the names in the package's `__init__`, and `(room)` the modules outside packages.

    base          *
    io            *
    scan          *
    folder        *
    mutation      *
    backup        *
    schema        (package)
    log           (package)
    read          latest, latest_cache, row_ranges, view, window_statistics
    checkpoint    checkpoint, checkpoint_set, fetch, registry
    loading       content, loader, staging
    tsfile        file_outline, reader, verifier, writer
    kernels       cache, jit, precompile
    kernels       field_columns, line_protocol, merge, prefixed, remote_write, time_gaps, windows
    cache         chunk_cache
    compaction    compactor
    flush         pacer
    partition     partition_status
    (room)        folder_check, layers, region, store
"""

import logging

logging.getLogger(__name__).addHandler(logging.NullHandler())
