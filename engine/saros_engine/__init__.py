"""From statements to blocks: analysis, plans, fragments, operators."""

import logging

logging.getLogger(__name__).addHandler(logging.NullHandler())
