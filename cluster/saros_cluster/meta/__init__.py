"""The meta group's state: what every node must know and agree on."""
