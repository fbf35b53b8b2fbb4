"""Other projects' clients, such as IoTDB's from PyPI and Maven Central, which are kept in the user's cache folder.

    python_packages("2.0.11")    a folder for PYTHONPATH
    java_classes("2.0.5", paths)    a class path: the jars, and programs compiled with them
    openapi_client("go", document)    the sources of a client that openapi-generator makes
    go_program(folder)    a program, built with modules that are on this machine

Raises Unavailable if a tool is absent, or the registry does not have what is needed or cannot be reached.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "saros", "stock-clients")
#: Packages that `apache-iotdb` needs and that this environment does not have.
_PACKAGES = ("tzlocal>=5", "sqlalchemy-utils>=0.42")
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
#: The old names of those Java classes that were moved between 1.3 and 2.0.
_OLD_NAMES = {
    "org.apache.tsfile.enums.": "org.apache.iotdb.tsfile.file.metadata.enums.",
    "org.apache.tsfile.": "org.apache.iotdb.tsfile.",
}
#: The only version of which Maven Central has the CLI, with its export and import tools.
CLI_VERSION = "2.0.1-beta"
#: The programs of this folder.
PROGRAMS = tuple(sorted(_HERE.glob("*.java")))
_GENERATOR = "openapi-generator-cli", "7.23.0"
_COPY_ONE = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
_SECONDS = 45
_ANYTHING = ""
#: The reasons why artefacts are unavailable. This process does not try to fetch such an artefact again.
_failures: dict[str, str] = {}


class Unavailable(Exception):
    """A client cannot be made available on this machine."""


def python_packages(version: str) -> Path:
    """Return the folder that contains a version of `apache-iotdb` and its dependencies."""
    packages = f"apache-iotdb=={version}", *_PACKAGES
    folder = _CACHE / f"python-{sys.version_info.major}.{sys.version_info.minor}-{_digest(*packages)}"
    if not folder.exists():
        part = _empty(folder)
        pip = (sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "1")
        _run((*pip, "--no-deps", "--target", str(part), *packages), f"apache-iotdb {version}")
        part.rename(folder)
    return folder


def java_classes(version: str, programs: Sequence[Path] = PROGRAMS) -> str:
    """Compile the programs, and return a class path with them and with the jars of a version."""
    for tool in ("java", "javac", "mvn"):
        if shutil.which(tool) is None:
            raise Unavailable(f"there is no {tool}")
    jars = _jars(version)
    if not programs:
        return f"{jars}/*"
    sources = {path.name: _as_of(version, path.read_text()) for path in programs}
    classes = jars / _digest(*sources.values())
    if not classes.exists():
        part = _empty(classes)
        for name, text in sources.items():
            (part / name).write_text(text)
        files = [str(part / name) for name in sources]
        _run(("javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(part), *files), f"clients of {version}")
        part.rename(classes)
    return f"{classes}{os.pathsep}{jars}/*"


def openapi_client(language: str, document: str, *properties: str) -> Path:
    """Return a folder with the sources of a client for the service that an OpenAPI document describes."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise Unavailable(f"there is no {tool}")
    folder = _CACHE / f"openapi-{language}-{_digest(*_GENERATOR, document, *properties)}"
    if not folder.exists():
        part = _empty(folder)
        (part / "openapi.json").write_text(document)
        command = ("java", "-jar", str(_generator()), "generate", "-g", language)
        command += ("-i", str(part / "openapi.json"), "-o", str(part), "--additional-properties", ",".join(properties))
        _run(command, f"a client in {language}")
        part.rename(folder)
    return folder


def _generator() -> Path:
    name, version = _GENERATOR
    jar = _CACHE / f"{name}-{version}" / f"{name}-{version}.jar"
    if not jar.exists():
        part = _empty(jar.parent)
        options = (f"-Dartifact=org.openapitools:{name}:{version}", f"-DoutputDirectory={part}")
        _run(("mvn", "-B", "-q", _COPY_ONE, *options), name)
        part.rename(jar.parent)
    return jar


def go_program(folder: Path, to: Path) -> Path:
    """Build the Go program whose sources are in a folder. Nothing is downloaded for this."""
    if shutil.which("go") is None:
        raise Unavailable("there is no go")
    environment = {**os.environ, "GOPROXY": "off", "GOFLAGS": "-mod=readonly"}
    _run(("go", "build", "-o", str(to), "."), f"the program in {folder.name}", cwd=folder, env=environment)
    return to


def _jars(version: str) -> Path:
    folder = _CACHE / f"java-{version}"
    if not folder.exists():
        part = _empty(folder)
        options = (f"-Diotdb.version={version}", f"-DoutputDirectory={part}", "-DincludeScope=runtime")
        options += ("-Pcli",) if version == CLI_VERSION else ()
        _run(("mvn", "-B", "-q", "-f", str(_HERE / "pom.xml"), _COPY, *options), f"iotdb-jdbc, iotdb-session {version}")
        part.rename(folder)
    return folder


def _as_of(version: str, source: str) -> str:
    if version.startswith("1."):
        for name, old in _OLD_NAMES.items():
            source = source.replace(name, old)
    return source


def _empty(folder: Path) -> Path:
    """Return a new, empty folder. The caller must fill it and then rename it to `folder`."""
    part = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    return part


def _run(command: Sequence[str], what: str, **options: Any) -> None:
    """Run a command that fetches or makes something. Raises Unavailable if it fails, or if one has timed out before."""
    for failed in (what, _ANYTHING):
        if failed in _failures:
            raise Unavailable(_failures[failed])
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS, text=True, **options)
    except subprocess.TimeoutExpired as error:
        _failures[_ANYTHING] = f"{what} took more than {_SECONDS} s"
        raise Unavailable(_failures[_ANYTHING]) from error
    except (subprocess.SubprocessError, OSError) as error:
        said = str(getattr(error, "stderr", None) or error).strip().splitlines()
        _failures[what] = f"{what} cannot be had: {said[-1] if said else error}"
        raise Unavailable(_failures[what]) from error


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
