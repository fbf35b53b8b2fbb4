"""Many nodes as one database: placement, Raft groups, routing, growth; see the room's README."""

import logging

logging.getLogger(__name__).addHandler(logging.NullHandler())
