"""The client protocol: the status codes, calls and messages that clients and nodes share."""
