"""InfluxDB's line protocol: lines become columns of devices, whichever way they come."""
