"""Reading: devices and series as relations, tasks, batches; TsFiles; micro-batches of streams."""
