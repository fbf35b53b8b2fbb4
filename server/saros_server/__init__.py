"""A node: the composition root, sessions, the client API and its protocols, security, options."""

import logging

logging.getLogger(__name__).addHandler(logging.NullHandler())
