"""The query engine: turns statements into blocks of rows by way of analysis, plans, fragments and operators."""

import logging

logging.getLogger(__name__).addHandler(logging.NullHandler())
