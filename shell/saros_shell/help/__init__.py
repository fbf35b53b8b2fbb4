"""Help that is generated from the parsers of the `saros` command: completion scripts of shells, and the man page.

    command_line    the commands with their options, from all parsers
    completion      scripts for bash, zsh, fish; `saros completion`
    man_page        saros(1)

The generated files are in `deploy/share`, for packagers; a test keeps them up to date (`pytest --rewrite`).
"""
