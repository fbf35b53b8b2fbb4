"""The process around a node: background start, `server.json`, logs, signals, warm-up, version."""
