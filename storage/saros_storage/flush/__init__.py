"""Flushing in the background: frozen MemTables become files, loaded files are adopted, the log is truncated."""
