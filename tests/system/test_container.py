"""The image of deploy/Containerfile: its command, environment and health check, run as plain processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from waiting import wait_until

import saros
from saros_server.process.server_file import serving

DEPLOY = Path(__file__).parents[2] / "deploy"
#: Another address of this machine. A client that connects to it represents clients that use a published port.
HOST = "127.0.0.2"
#: Settings as passed to a container with `-e`: names in the certificate, and free ports.
GIVEN = {"SAROS_TLS_SELF_SIGNED": f"localhost, {HOST}", "SAROS_LISTEN_PORT": "0", "SAROS_HTTP_PORT": "0"}
PASSWORD = "a-long-password"


class Image:
    """The parsed Containerfile, with another folder in place of /data."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.text = (DEPLOY / "Containerfile").read_text()
        own = {name: value for name, value in os.environ.items() if not name.startswith("SAROS_")}
        (variables,) = re.findall(r"^ENV (.*)$", self.text, re.MULTILINE)
        self.environment = own | dict(word.split("=", 1) for word in variables.split())

    def command(self, instruction: str) -> list[str]:
        """Return the words of ENTRYPOINT or of HEALTHCHECK's CMD, but with the `saros` of this interpreter."""
        (words,) = re.findall(rf"^{instruction}.*?(\[.*\])$", self.text, re.MULTILINE)
        name, *arguments = json.loads(words)
        assert "saros" == name
        return [sys.executable, "-m", "saros_shell", *(str(self.data) if a == "/data" else a for a in arguments)]

    def health(self) -> int:
        """Return the exit code of the health check."""
        words = self.command("HEALTHCHECK")
        return subprocess.run(words, env=self.environment, capture_output=True, check=False).returncode

    @contextmanager
    def running(self, environment: dict[str, str], arguments: Sequence[str] = ()) -> Iterator[str]:
        """Run the entry point, yield its port once it serves, and end it in the way a container is stopped."""
        with (self.data.parent / "output").open("w") as output:
            words = [*self.command("ENTRYPOINT"), *arguments]
            process = subprocess.Popen(words, env=self.environment | environment, stdout=output, stderr=output)
            try:
                wait_until(lambda: serving(str(self.data)) is not None or process.poll() is not None)
                found = serving(str(self.data))
                assert found is not None, self.output()
                yield found.address.rpartition(":")[2]
            finally:
                process.terminate()
                code = process.wait()
        assert 0 == code

    def output(self) -> str:
        """Return the output, which `podman logs` would show."""
        return (self.data.parent / "output").read_text()


@pytest.fixture
def image(tmp_path: Path) -> Image:
    (tmp_path / "data").mkdir()
    return Image(tmp_path / "data")


@pytest.mark.slow
def test_a_client_elsewhere_needs_tls_and_a_password(image: Image) -> None:
    trusted = image.data / "tls" / "ca.pem"
    assert 3 == image.health()
    with image.running(GIVEN) as port:
        assert 0 == image.health()
        (once,) = re.findall(
            r"created administrator root with a one-time password.*: (\S+)$", image.output(), re.MULTILINE
        )
        assert (
            f"TLS certificate for localhost, {HOST}; clients need a copy of {trusted} (?tls=ca.pem)" in image.output()
        )
        with saros.connect(f"saros://root:{once}@{HOST}:{port}/?tls={trusted}") as connection:
            connection.execute(f"ALTER USER root SET PASSWORD '{PASSWORD}'")
        for refused in (f"root:{PASSWORD}@{HOST}:{port}", f"{HOST}:{port}/?tls={trusted}"):
            with pytest.raises(saros.Error, match=r"TLS only|wrong user or password"):
                saros.connect(f"saros://{refused}")
    copy = trusted.read_bytes()
    with image.running(GIVEN) as port:
        assert "password" not in image.output()
        assert copy == trusted.read_bytes()
        with saros.connect(f"saros://root:{PASSWORD}@{HOST}:{port}/?tls={trusted}") as connection:
            assert [(1,)] == [tuple(row) for row in connection.execute("select 1")]


@pytest.mark.slow
def test_a_secret_is_the_first_password(image: Image, tmp_path: Path) -> None:
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["saros"]
    option, path = service["command"]
    assert "/run/secrets/" + service["secrets"][0] == path
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD)
    with image.running(GIVEN, [option, str(secret)]) as port:
        assert "password" not in image.output()
        with saros.connect(f"saros://root:{PASSWORD}@{HOST}:{port}/?tls={image.data}/tls/ca.pem") as connection:
            connection.execute("show databases")


@pytest.mark.slow
def test_without_tls_and_users_it_starts_only_if_that_is_said(image: Image) -> None:
    bare = GIVEN | {"SAROS_TLS_SELF_SIGNED": "", "SAROS_AUTHENTICATION": "off"}
    refused = subprocess.run(
        image.command("ENTRYPOINT"), env=image.environment | bare, capture_output=True, text=True, check=False
    )
    assert (1, True) == (refused.returncode, "--insecure to allow it anyway" in refused.stderr)
    with image.running(bare, ["--insecure"]) as port:
        # The port may be known a moment before it is open. The message is logged once the port is open.
        wait_until(lambda: "insecure: others can read and change network traffic" in image.output())
        with saros.connect(f"saros://{HOST}:{port}") as connection:
            connection.execute("show databases")
