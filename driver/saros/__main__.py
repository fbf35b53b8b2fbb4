"""`python -m saros`: runs the `saros` command.

A higher layer contains the command, so this module finds the command through its entry point.
"""

import sys
from importlib.metadata import entry_points

(script, *_) = entry_points(group="console_scripts", name="saros")
sys.exit(script.load()())
