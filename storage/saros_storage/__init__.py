"""Types, paths, TsFiles, the log, MemTables, partitions, the schema tree, series readers."""
