"""From a logical plan to fragments: plans reused with other values, exchanges, scans split by time."""
