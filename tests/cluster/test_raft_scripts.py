"""Raft nodes driven by scripts: the output of each script in testdata/raft/ equals the recorded output.

`pytest --rewrite` updates the outputs.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster.raft_script import Table, cases, rewritten

SCRIPTS = sorted((Path(__file__).parent / "testdata" / "raft").glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_nodes_do_what_the_script_says(path, request):
    text = path.read_text(encoding="utf-8")
    if request.config.getoption("--rewrite"):
        path.write_text(rewritten(text), encoding="utf-8")
        return
    table = Table()
    for commands, expected in cases(text):
        assert expected == table.run(commands), commands
