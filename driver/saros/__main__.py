"""`python -m saros`: the `saros` command, found by its entry point, since it belongs to a room above this one."""

import sys
from importlib.metadata import entry_points

(script, *_) = entry_points(group="console_scripts", name="saros")
sys.exit(script.load()())
