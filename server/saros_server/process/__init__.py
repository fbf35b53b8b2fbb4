"""The process in which a node runs: background start, `server.json`, logs, signals, warm-up, version."""
