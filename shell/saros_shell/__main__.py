"""`python -m saros_shell`: the `saros` command, for a `saros` process that starts another `saros` process."""

import sys

from saros_shell.main import main

sys.exit(main())
