"""Help outside of the `saros` command, from its parsers: completion scripts of shells, and the man page.

    command_line    the commands with their options, from all parsers
    completion      scripts for bash, zsh, fish; `saros completion`
    man_page        saros(1)

`deploy/share` holds what they make, for packagers; a test keeps it up to date (`pytest --rewrite`).
"""
