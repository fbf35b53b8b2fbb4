"""Options and command lines.

configuration    options, and their four sources
memory_limits    how much of the machine's memory the process may use
data_folder      folders that may become a data folder
arguments        parsing of command lines
did_you_mean     the hint to an unknown word
"""
