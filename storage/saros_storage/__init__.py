"""Types, paths, TsFiles, the log, MemTables, partitions, the schema tree, series readers."""

import logging

logging.getLogger(__name__).addHandler(logging.NullHandler())
