"""Completion scripts and the man page have all commands and options, and the installed files are up to date."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from saros_shell.help.command_line import commands
from saros_shell.help.completion import SCRIPTS
from saros_shell.help.man_page import man_page
from saros_shell.main import COMMANDS, main

SHARE = Path(__file__).parents[2] / "deploy" / "share"
FILES = {
    "bash-completion/completions/saros": SCRIPTS["bash"],
    "zsh/site-functions/_saros": SCRIPTS["zsh"],
    "fish/vendor_completions.d/saros.fish": SCRIPTS["fish"],
    "man/man1/saros.1": man_page,
}


@pytest.mark.parametrize("name", FILES)
def test_installed_files_are_those_of_the_parsers(name: str, request: pytest.FixtureRequest) -> None:
    made, path = FILES[name](commands()), SHARE / name
    if request.config.getoption("--rewrite"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made)
    assert made == path.read_text(), "run this test with --rewrite"


def test_all_commands_are_known() -> None:
    assert list(COMMANDS) == list(dict.fromkeys(command.words[0] for command in commands()))


def completed(*words: str) -> list[str]:
    """Return the completions that bash offers at the end of a command line."""
    script = SCRIPTS["bash"](commands())
    line = " ".join(f"'{word}'" for word in words)
    ask = f'COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _saros; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("saros", "st"), ["start", "stop", "status"]),
        (("saros", "start", "--da"), ["--data"]),
        (("saros", "cluster", "add"), ["add-node"]),
        (("saros", "cluster", "add-node", "--no"), ["--nodes", "--no-wait"]),
        (("saros", "shell", "data", "--format", "v"), ["vertical"]),
        (("saros", "user", "in"), ["init"]),
        (("saros", "completion", ""), ["bash", "zsh", "fish"]),
        (("saros", "backup", "list", "--qu"), ["--quiet"]),
        (("saros", "import", "file"), []),
    ],
)
def test_bash_completes_commands_options_and_values(words: tuple[str, ...], expected: list[str]) -> None:
    assert expected == [word for word in completed(*words) if word not in ("-h", "--help")]


def test_the_script_of_a_shell_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["completion", "zsh"])
    assert capsys.readouterr().out.startswith("#compdef saros\n")


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff")
def test_the_man_page_is_read_without_complaints() -> None:
    page = man_page(commands())
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-"], input=page, capture_output=True, text=True, check=True
    )
    assert "" == done.stderr
    assert "remove-node" in re.sub(".\b", "", done.stdout)  # groff types each bold letter twice
