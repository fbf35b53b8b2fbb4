"""`python -m saros_shell`: the `saros` command, for processes that start another one like themselves."""

import sys

from saros_shell.main import main

sys.exit(main())
