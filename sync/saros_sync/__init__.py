"""The sync tool mirrors the sealed data of one instance at another over an unreliable network. See README.md."""

import logging

logging.getLogger(__name__).addHandler(logging.NullHandler())
