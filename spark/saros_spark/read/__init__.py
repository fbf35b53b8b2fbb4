"""Reading: relations of devices and series, tasks, batches; TsFiles; micro-batches of streams."""
