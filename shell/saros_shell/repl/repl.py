"""The interactive shell: prompt, history, completion, colours, questions.

    read until `;` (or a line with a backslash command) -> run -> print -> read ...

Ctrl-C clears the line that is being typed, and cancels a statement that is running. Ctrl-D leaves. A command in the
middle of a statement runs at once, and the next prompt begins with the part of the statement before the command. The
main thread does everything except completion, which has a separate thread.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterable
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer

import saros
from saros.base.target import SCHEME, parse_target, without_password
from saros_shell.output.pager import UNREAD, print_lines, print_paged
from saros_shell.repl.backslash_commands import COMMANDS
from saros_shell.repl.completion import DatabaseNames, SarosCompleter
from saros_shell.repl.history import open_history
from saros_shell.repl.lexer import SarosLexer
from saros_shell.repl.runner import Settings, StatementRunner
from saros_shell.repl.session import Session
from saros_shell.repl.shell_config import ShellConfig
from saros_shell.repl.statements import is_complete, trailing_command

BANNER = r"Saros {version} on {target}. Statements end with ;  \? lists commands, \q leaves."
ZONE = r"Times are in {zone}; \zone {other} changes that."


class Shell:
    """One interactive session."""

    def __init__(
        self,
        connection: saros.Connection,
        target: str,
        *,
        config: ShellConfig,
        settings: Settings,
        connect: Callable[[str], saros.Connection] = saros.connect,
        confirm: bool = True,
    ) -> None:
        r"""Make a session.

        `connect` opens the target of `\c`. If `confirm` is True, the shell asks before statements that delete much.
        """
        self.config = config
        runner = StatementRunner(connection, self._print, print_lines_to_stderr, settings, screen=_screen)
        self.session = Session(
            runner, target, connect, _ask_on_terminal if confirm else _assume_yes, paging=config.paging
        )
        usages = {name: command.usage for name, command in COMMANDS.items()}
        self._prompt: PromptSession[str] = PromptSession(
            history=open_history(),
            auto_suggest=AutoSuggestFromHistory() if config.suggest_from_history else None,
            lexer=PygmentsLexer(SarosLexer) if config.colors else None,
            completer=SarosCompleter(DatabaseNames(lambda: self.session.runner.connection), usages),
            complete_while_typing=config.complete_while_typing,
            editing_mode=EditingMode.VI if config.vi_mode else EditingMode.EMACS,
            key_bindings=_key_bindings(),
            tempfile_suffix=".sql",
            multiline=Condition(lambda: not is_complete(self._prompt.default_buffer.text)),
            prompt_continuation=lambda width, *_: "-> ".rjust(width),
        )

    def run(self, note: str = "") -> int:
        """Run until the user leaves, and return the exit code. The banner shows `note` after the target."""
        if self.session.runner.settings.chatty:
            target = without_password(self.session.target) + note
            self.session.runner.out([BANNER.format(version=saros.__version__, target=target), self._zone_line()])
        while not self.session.leaving:
            draft, self.session.draft = self.session.draft, ""
            try:
                text = self._prompt.prompt(prompt_text(self.config.prompt, self.session.target), default=draft)
            except KeyboardInterrupt:
                continue
            except EOFError:
                break
            self._run_input(text)
        return 0

    def _run_input(self, text: str) -> None:
        """Run the input. A statement that a command interrupts becomes the draft of the next prompt."""
        command = trailing_command(text)
        if command is not None:
            self.session.draft = text[: text.rindex("\n") + 1]
        self.session.run(command or text)

    def _zone_line(self) -> str:
        row = self.session.runner.connection.execute("show time zone").fetchone()
        zone = row[0] if row else "UTC"
        return ZONE.format(zone=zone, other="UTC" if zone != "UTC" else "Europe/Berlin")

    def _print(self, lines: Iterable[str]) -> None:
        if not self.session.paging:
            print_lines(lines)
        elif not print_paged(lines):
            self.session.runner.error([UNREAD])


def _key_bindings() -> KeyBindings:
    """Return bindings for keys that behave differently from prompt_toolkit's defaults."""
    bindings = KeyBindings()

    @bindings.add("c-x", "c-e")
    def _edit(event: KeyPressEvent) -> None:
        event.current_buffer.open_in_editor()  # does not run the edited text, which may lack its semicolon

    @bindings.add("c-l")
    def _clear(event: KeyPressEvent) -> None:
        # The screen is cleared later: a key typed ahead is handled before the terminal is in raw mode, and until then,
        # the terminal would echo its own reply.
        asyncio.get_running_loop().call_soon(_clear_screen, event.app)

    return bindings


def _clear_screen(app: Application[Any]) -> None:
    app.renderer.clear()
    app.invalidate()


def prompt_text(form: str, target: str) -> str:
    """Return the prompt for a target: `ann@plant.example:6667> `, or the name of a folder."""
    user, where = "", target.rstrip("/").rpartition("/")[2] or target
    if target.startswith(SCHEME):
        parsed = parse_target(target)
        user, more = parsed.user, len(parsed.addresses) - 1
        where = (f"{user}@" if user else "") + parsed.addresses[0] + (f"+{more}" if more else "")
    return form.replace("{target}", where).replace("{user}", user)


def _ask_on_terminal(question: str) -> bool:
    """Ask on the terminal. Any answer other than yes means no."""
    try:
        return input(question).strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        sys.stdout.write("\n")
        return False


def _assume_yes(_: str) -> bool:
    return True


def _screen() -> tuple[int, int]:
    """Return the columns and lines of the terminal, without the lines of the next prompt."""
    size = shutil.get_terminal_size()
    return size.columns, size.lines - 2


def print_lines_to_stderr(lines: Iterable[str]) -> None:
    """Print lines on standard error."""
    for line in lines:
        sys.stderr.write(line + "\n")
    sys.stderr.flush()
