"""The lines that `saros start` prints about HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from saros_server.auth.security import Security
from saros_server.config.configuration import load
from saros_server.foreground import Prepared
from saros_server.process.server_file import Serving
from saros_shell.commands.start import write_http


@pytest.mark.parametrize(
    ("port", "url", "line"),
    [
        (18080, "http://127.0.0.1:18080", "HTTP at http://127.0.0.1:18080\n"),
        (18080, "", "no HTTP: port 18080 is in use; choose another one with --http-port, or 0 for none\n"),
        (0, "", ""),
    ],
)
def test_where_http_is(port: int, url: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configuration = load(environment={}, overrides={"http_port": port}).values
    prepared = Prepared(str(tmp_path), configuration, {}, Security(), is_http_required=False)
    write_http(Serving(1, "127.0.0.1:6667", "", url), prepared)
    assert line == capsys.readouterr().out
