"""`saros completion SHELL`: the script with which a shell completes the commands and options of `saros`.

    bash    source <(saros completion bash)                  or into /usr/share/bash-completion/completions/saros
    zsh     saros completion zsh > a folder of $fpath/_saros
    fish    saros completion fish > ~/.config/fish/completions/saros.fish

The scripts contain the words of all commands, so that completion does not start Python. A word that is neither a
command nor an option is completed as a file name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from saros_shell.help.command_line import Command, Option, commands, completion_parser

#: The first line of each script.
_MADE = "# Completion of the saros command; made by `saros completion {}`."


def main(arguments: Sequence[str]) -> int:
    """Print the completion script of a shell."""
    sys.stdout.write(SCRIPTS[completion_parser().parse_args(arguments).shell](commands()))
    return 0


def _below(command: Command | None, known: Sequence[Command]) -> list[Command]:
    """Return the sub-commands of a command, or all top-level commands if it is None."""
    words = () if command is None else command.words
    return [other for other in known if other.words[:-1] == words]


def _bash(known: Sequence[Command]) -> str:
    arms = [f"        '') words='{' '.join(c.words[0] for c in _below(None, known))}' ;;"]
    for command in known:
        words = [below.words[-1] for below in _below(command, known)]
        words += [*command.choices, *(name for option in command.options for name in option.names)]
        arms.append(f"        '{' '.join(command.words)}') words='{' '.join(words)}' ;;")
    choices = [
        f"        '{' '.join(command.words)} {name}') words='{' '.join(option.choices)}' ;;"
        for command in known
        for option in command.options
        if option.choices
        for name in option.names
    ]
    commands_of_two = "|".join(" ".join(command.words) for command in known if len(command.words) > 1)
    return "\n".join(
        [
            _MADE.format("bash"),
            "_saros() {",
            '    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" command="" words=""',
            '    ((COMP_CWORD > 1)) && command="${COMP_WORDS[1]}"',
            '    if ((COMP_CWORD > 2)); then case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in',
            f"        {commands_of_two.replace(' ', chr(92) + ' ')})",
            '            command="${COMP_WORDS[1]} ${COMP_WORDS[2]}" ;;',
            "    esac; fi",
            '    case "$command $previous" in',
            *choices,
            "    esac",
            '    [[ -n $words ]] || case "$command" in',
            *arms,
            "    esac",
            '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "}",
            "complete -o default -F _saros saros",
            "",
        ]
    )


def _zsh(known: Sequence[Command]) -> str:
    def entry(word: str, what: str) -> str:
        text = f"{word.replace(':', chr(92) + ':')}:{what}"
        return "'" + text.replace("'", "'\\''") + "'"

    arms = []
    for command in (None, *known):
        entries = [entry(below.words[-1], below.what) for below in _below(command, known)]
        options: Sequence[Option] = () if command is None else command.options
        entries += [] if command is None else [entry(choice, "") for choice in command.choices]
        entries += [entry(name, option.what) for option in options for name in option.names]
        words = "" if command is None else " ".join(command.words)
        arms.append(f"        '{words}') found=({' '.join(entries)}) ;;")
    of_two = " ".join(f"'{' '.join(command.words)}'" for command in known if len(command.words) > 1)
    return "\n".join(
        [
            "#compdef saros",
            _MADE.format("zsh"),
            "_saros() {",
            "    local command=''",
            f"    local -a found of_two=({of_two})",
            "    ((CURRENT > 2)) && command=$words[2]",
            '    ((CURRENT > 3 && ${of_two[(Ie)$words[2] $words[3]]})) && command="$words[2] $words[3]"',
            '    case "$command" in',
            *arms,
            "    esac",
            "    _describe 'saros' found",
            "    [[ $words[CURRENT] == -* || -z $command ]] || _files",
            "}",
            '_saros "$@"',
            "",
        ]
    )


def _fish(known: Sequence[Command]) -> str:
    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = [_MADE.format("fish")]
    lines += [
        f"complete -c saros -n __fish_use_subcommand -f -a {command.words[0]} -d {quoted(command.what)}"
        for command in _below(None, known)
    ]
    for command in known:
        below = _below(command, known)
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.words)
        if below:
            seen += f"; and not __fish_seen_subcommand_from {' '.join(other.words[-1] for other in below)}"
        start = f"complete -c saros -n {quoted(seen)}"
        lines += [f"{start} -a {other.words[-1]} -d {quoted(other.what)}" for other in below]
        lines += [f"{start} -a {choice}" for choice in command.choices]
        lines += [f"{start} {_fish_option(option)} -d {quoted(option.what)}" for option in command.options]
    return "\n".join([*lines, ""])


def _fish_option(option: Option) -> str:
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    choices = [f"-x -a '{' '.join(option.choices)}'"] if option.choices else ["-r"] if option.value else []
    return " ".join([*names, *choices])


#: For the name of each shell, the function that makes its script.
SCRIPTS: dict[str, Callable[[Sequence[Command]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
