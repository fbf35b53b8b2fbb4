"""`python -m saros`: runs the `saros` command, found through its entry point because it is in a higher layer."""

import sys
from importlib.metadata import entry_points

(script, *_) = entry_points(group="console_scripts", name="saros")
sys.exit(script.load()())
