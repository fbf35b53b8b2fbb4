"""What a client and a node share: status codes, calls and messages."""
