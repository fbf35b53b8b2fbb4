"""A node: configuration, sessions, the composition root, the saros command."""

import logging

logging.getLogger(__name__).addHandler(logging.NullHandler())
