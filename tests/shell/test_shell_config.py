from __future__ import annotations

from pathlib import Path

import pytest

from saros_shell.repl.shell_config import ShellConfig, load_config


def test_a_file_that_is_not_there_has_no_options(tmp_path: Path) -> None:
    assert (ShellConfig(), []) == load_config(tmp_path / "config.toml")


def test_options_are_read(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('vi_mode = true\nnull_text = "-"\npaging = false\nprompt = "{user}: "\n', encoding="utf-8")
    assert (ShellConfig(vi_mode=True, null_text="-", paging=False, prompt="{user}: "), []) == load_config(file)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("vi_mod = true", "unknown option vi_mod; did you mean vi_mode?"),
        ("[shell]", "unknown option shell"),
        ("timing = 1", "timing is true or false, not 1"),
        ("null_text = 0", "null_text is a text, not 0"),
        ('format = "xml"', "format is one of table, csv, json, vertical, not 'xml'"),
        ("format = true", "format is one of table, csv, json, vertical, not True"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_the_rest_holds(tmp_path: Path, line: str, complaint: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"# mine\nvi_mode = true\n\n{line}\n", encoding="utf-8")
    assert (ShellConfig(vi_mode=True), [f"{file}, line 4: {complaint}"]) == load_config(file)


def test_a_file_that_is_no_toml_is_named_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("vi_mode = true\nnull_text = \n", encoding="utf-8")
    config, (complaint,) = load_config(file)
    assert ShellConfig() == config
    assert complaint.startswith(f"{file}: ")
    assert "line 2" in complaint
    file.write_bytes(b'prompt = "\xff"')
    assert (ShellConfig(), [f"cannot read {file}: not UTF-8"]) == load_config(file)
    assert (ShellConfig(), [f"cannot read {tmp_path}: Is a directory"]) == load_config(tmp_path)
