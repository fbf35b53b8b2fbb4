"""The sync tool: one instance's sealed data, mirrored by another over an unreliable network; see the room's README."""

import logging

logging.getLogger(__name__).addHandler(logging.NullHandler())
