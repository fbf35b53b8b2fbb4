"""The wheel works in a separate environment outside of the repository, and two builds are identical."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Parts of the output of pip if it cannot download the build system.
OFFLINE = ("No matching distribution found for hatchling", "Could not find a version that satisfies", "Connection")
PIP = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
#: Folders of the repository that contain no sources of the wheel.
LEFT_OUT = {".git", ".venv", "benchmarks", "build", "data", "docs", "tests"}
STATEMENTS = "insert into root.a.d(time, x) values (1, 1.5), (2, 2.5); select avg(x) from root.a.d;"


def build(source: Path, folder: Path, umask: int = -1) -> Path:
    """Return the wheel of a source tree, built into `folder`."""
    command = [*PIP, "wheel", "--no-deps", "-w", str(folder), str(source)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    built = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, umask=umask)
    if built.returncode and any(words in built.stderr for words in OFFLINE):
        pytest.skip("the wheel cannot be built without a network")
    assert 0 == built.returncode, built.stderr
    (wheel,) = folder.glob("saros-*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of the repository."""
    return build(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """Return an environment with the wheel; it uses the libraries of the tests' environment."""
    folder = wheel.parent
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
    (site,) = (folder / "env" / "lib").glob("python3*/site-packages")
    install = ["--python", str(folder / "env" / "bin" / "python"), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*PIP, *install], check=True)
    # Python does not read the .pth files of the listed folder, so the repository is not on the path.
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "env"


def run(folder: Path, *words: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_command_of_a_wheel_runs_statements(installed: Path, tmp_path: Path) -> None:
    saros = str(installed / "bin" / "saros")
    assert run(tmp_path, saros, "shell", "data", "--format", "csv", "-e", STATEMENTS).endswith("\n2.0\n")
    module = (str(installed / "bin" / "python"), "-m", "saros")
    assert run(tmp_path, saros, "--version") == run(tmp_path, *module, "--version")
    where = run(tmp_path, *module[:1], "-c", "import saros_server, saros_spark; print(saros_server.__file__)")
    assert Path(where).is_relative_to(installed)


@pytest.mark.slow
def test_a_wheel_has_the_console_the_licenses_and_the_completion_scripts(installed: Path) -> None:
    share = installed / "share"
    assert (share / "man" / "man1" / "saros.1").read_text().startswith(".TH SAROS")
    assert (share / "bash-completion" / "completions" / "saros").exists()
    (site,) = (installed / "lib").glob("python3*/site-packages")
    assert (site / "saros_server" / "console" / "static" / "console.js").exists()
    (information,) = site.glob("saros-*.dist-info")
    assert ["LICENSE", "NOTICE"] == sorted(os.listdir(information / "licenses"))


@pytest.mark.slow
def test_a_build_elsewhere_makes_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    """The folder, the umask, and the times and permissions of the files do not matter."""
    copy = tmp_path / "a" / "copy"
    shutil.copytree(ROOT, copy, ignore=lambda folder, _: LEFT_OUT if folder == str(ROOT) else {"node_modules"})
    for path in copy.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        path.chmod(0o700 if path.is_dir() else 0o600)
    assert wheel.read_bytes() == build(copy, tmp_path / "out", umask=0o077).read_bytes()
