"""The man page saros(1), in man(7) markup."""

from __future__ import annotations

from collections.abc import Sequence

from saros_shell.help.command_line import Command, Option

_HEAD = r"""
.TH SAROS 1 "" Saros "User commands"
.SH NAME
saros \- a time\-series database
.SH SYNOPSIS
.B saros
.I COMMAND
.RI [ ARGUMENTS ]
.SH DESCRIPTION
Saros stores time series in a tree of devices and answers SQL. A database is a folder. It is used by one process, by
others through a server, or by a cluster of nodes.
.PP
A
.I TARGET
is a data folder, or saros://[user@]host:port of a server. The password of a user comes from SAROS_PASSWORD, or is asked
for on the terminal.
.SH COMMANDS
"""
_TAIL = r"""
.SH EXIT STATUS
0: success; 1: the database reported an error; 2: wrong usage; 3: nothing runs
.RB ( status );
130: interrupted.
.SH FILES
.TP
.I DATA/saros.toml
options of a data folder, see
.BR "saros config" .
.TP
.I DATA/server.log
the log of a server in the background.
.SH ENVIRONMENT
.TP
.B SAROS_PASSWORD
the password of the user that a TARGET names.
"""


def man_page(known: Sequence[Command]) -> str:
    """Return the man page of the commands."""
    return _HEAD.lstrip() + "".join(map(_section, known)) + _TAIL.lstrip()


def _section(command: Command) -> str:
    arguments = "".join(f" {argument}" for argument in command.arguments)
    title = f'.SS "saros {" ".join(command.words)}{_escaped(arguments)}"\n'
    return title + _line(command.what) + "".join(map(_option, command.options))


def _option(option: Option) -> str:
    names = ", ".join(f"\\fB{_escaped(name)}\\fR" for name in option.names)
    value = f" \\fI{_escaped('|'.join(option.choices) or option.value)}\\fR" if option.value else ""
    return f".TP\n{names}{value}\n{_line(option.what)}"


def _line(text: str) -> str:
    return f"{_escaped(text)}\n" if text else ""


def _escaped(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
