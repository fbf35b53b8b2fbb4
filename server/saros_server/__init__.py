"""A node: configuration, sessions, the composition root, the saros command."""
