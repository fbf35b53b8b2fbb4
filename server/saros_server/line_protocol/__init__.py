"""InfluxDB's line protocol: lines become columns of devices, over HTTP and from the driver."""
