"""The client protocol: status codes, calls and messages that a client and a node share."""
