"""Options and command lines: sources of options, memory limits, data folders, argument parsing."""
