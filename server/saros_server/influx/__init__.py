"""InfluxDB's line protocol over HTTP: bytes to columns, series keys to devices, writes with partial errors."""
