"""Many nodes as one database (an issue of its own; the room keeps its place)."""

import logging

logging.getLogger(__name__).addHandler(logging.NullHandler())
