"""`python -m saros_server`: a server in the foreground."""

import sys

from saros_server.foreground import main
from saros_server.process.terminal_log import write_lines
from saros_wire.grpc_log import silence_grpc_log

silence_grpc_log()
write_lines()
sys.exit(main(sys.argv[1:]))
