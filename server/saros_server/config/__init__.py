"""Options and command lines.

configuration    options, and their sources
device_template  the template of devices for line protocol
memory_limits    the memory that the process may use
data_folder      checks of data folders
arguments        parsing of command lines
did_you_mean     suggestions for unknown words
"""
