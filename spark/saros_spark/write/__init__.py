"""Writing: a task's rows to the server, or to sealed TsFiles."""
