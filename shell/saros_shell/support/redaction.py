"""Redaction of texts for a support bundle.

    root.plant.pump1             root.n-5be1c0a2.n-90d3f114      the same name has the same hash within a bundle
    user ann at 10.0.0.7:41022   user n-0c77aa31 at h-e2b9d470:41022
    select temperature from ...  select n-7d01f3c8 from ...      keywords and functions remain; literals are `?`
    cannot read 'abc' of tom     cannot read '?' of n-71ae22b0   words of Saros's own messages remain

Redaction keeps a word only if it is certain to be harmless, and hashes every other word. Therefore, even a name in an
unforeseen form cannot leak. The hashes depend on a random key, which is not stored, so that no one can find a name by
hashing guesses.

`words_of_messages` reads Saros's own source. The results of all other functions depend only on their arguments. Any
thread.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import re
from collections.abc import Collection
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from saros_engine.functions.registry import AGGREGATES, FUNCTIONS
from saros_grammar.shape import without_literals
from saros_shell.repl.keywords import CONSTANTS, KEYWORDS, TYPES

_PACKAGES = (
    "saros_grammar", "saros_engine", "saros_scheduler", "saros_cluster", "saros_storage", "saros_sync", "saros_wire",
    "saros_server", "saros", "saros_shell",
)  # fmt: skip
#: Matches the string literals in a line, except docstrings, and the names of classes, which tracebacks contain.
_TEXTS = re.compile(r"""(?<!")"(?!"")((?:[^"\\\n]|\\.)*)"|^class (\w+)""", re.MULTILINE)
_FIELD = re.compile(r"\{[^{}]*\}")
_SQL_WORDS = frozenset(map(str.lower, (*KEYWORDS, *TYPES, *CONSTANTS, *FUNCTIONS, *AGGREGATES, "root")))
#: The first words of statements in which every name is the name of a series. In other statements, a name may be a user
#: or a text: `tags(place=berlin)`.
_OF_SERIES = re.compile(r"\s*(?:explain\s+(?:analyze\s+)?)?(?:select|delete)\b", re.IGNORECASE)
_NODE = r"(?:`(?:[^`]|``)+`|[^\s.`'\",;:()\[\]{}=<>|/\\]+)"
_PATH = rf"\broot(?:\.{_NODE})+"
_ADDRESS = r"\b\d{1,3}(?:\.\d{1,3}){3}\b|(?<![\w:])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f.]{0,15}(?![\w:])"
_TIME = r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b"
_MESSAGE = re.compile(
    rf"(?P<token>\bsaros_[\w-]{{20,}})|(?P<login>//[^/@\s]+@)|(?P<quoted>'[^'\n]*'|\"[^\"\n]*\")|(?P<path>{_PATH})|(?P<time>{_TIME})|(?P<host>{_ADDRESS})|(?P<name>`[^`]*`)"
    r"|(?P<amount>\b\d+(?:\.\d+)?(?:ns|us|ms|s|m|h|d|B|[KMGT]i?B)?\b)|(?P<word>\w+)"
)
_STATEMENT = re.compile(
    r"(?P<path>(?:`(?:[^`]|``)*`|\w+)(?:\.(?:`(?:[^`]|``)*`|\w+|\*\*?))+)|(?P<name>`(?:[^`]|``)*`)|(?P<word>\w+)"
)
#: Matches a time of day, which the pattern of IPv6 addresses also matches.
_CLOCK = re.compile(r"\d\d?:\d\d:\d\d(?:\.\d+)?")
_PATH_NODE = re.compile(r"`(?:[^`]|``)*`|[^.]+")
_DURATION = re.compile(r"(?:\d+(?:y|mo|cd|cw|w|d|h|m|s|ms|us|ns))+", re.IGNORECASE)
_FRAME = re.compile(r'^\s+File "([^"]*)", line (\d+), in (\S+)$')
_HASH_BYTES = 4


class Redactor:
    """The redaction of one bundle. `with_names` keeps paths of series, `with_hosts` host names and addresses."""

    def __init__(
        self,
        key: bytes,
        *,
        with_names: bool = False,
        with_hosts: bool = False,
        known_words: Collection[str] | None = None,
    ) -> None:
        """`known_words` (in lower case) remain in messages. If it is None, the words of Saros's own messages remain."""
        self._key = key
        self._with_names = with_names
        self._with_hosts = with_hosts
        self._known = words_of_messages() if known_words is None else known_words

    def name(self, text: str) -> str:
        """Return the hash of a name of a user, a role, a series, ..."""
        return f"n-{self._hash(text)}"

    def host(self, text: str) -> str:
        """Return a host or `host:port` with the host hashed. A port or a loopback address remains."""
        if self._with_hosts or not text:
            return text
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdecimal() or (":" in host and not host.startswith("[")):
            host, colon, port = text, "", ""
        return f"{host if _is_local(host.strip('[]')) else f'h-{self._hash(host)}'}{colon}{port}"

    def path(self, text: str) -> str:
        """Return a path with its nodes hashed, except `root` and wildcards. `with_names` keeps paths below root."""
        nodes = _PATH_NODE.findall(text)
        if self._with_names and nodes[0] == "root":
            return text
        return ".".join(node if node in ("root", "*", "**") else self.name(node.strip("`")) for node in nodes)

    def statement(self, text: str) -> str:
        """Return a statement with `?` in place of literals, and with hashed names."""
        shape = without_literals(text)
        if shape is None:
            return "(unreadable)"
        if self._with_names and _OF_SERIES.match(shape):
            return shape
        return _STATEMENT.sub(self._word_of_statement, shape)

    def _word_of_statement(self, match: re.Match[str]) -> str:
        text = match[0]
        if match.lastgroup == "path":
            return self.path(text)
        if match.lastgroup == "name":
            return self.name(text.strip("`"))
        return text if text.lower() in _SQL_WORDS or _DURATION.fullmatch(text) else self.name(text)

    def message(self, text: str) -> str:
        """Return a message without quoted texts, and with a hash for each word that occurs in no message of Saros."""
        return _MESSAGE.sub(self._word_of_message, text)

    def _word_of_message(self, match: re.Match[str]) -> str:
        text = match[0]
        match match.lastgroup:
            case "quoted":
                return f"{text[0]}?{text[0]}"
            case "token":
                return "(token)"
            case "login":
                return "//(login)@"
            case "path":
                return self.path(text)
            case "name":
                return self.name(text.strip("`"))
            case "host":
                if _CLOCK.fullmatch(text):
                    return text
                return self.host(text) if _is_address(text) else self.name(text)
            case "word":
                return text if text.lower() in self._known else self.name(text)
            case _:
                return text

    def log_line(self, line: str) -> str:
        """Return a redacted line of a server's log. Lines are JSON objects; any other line is redacted as a message."""
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            return self.message(line)
        if not isinstance(fields, dict):
            return self.message(line)
        return json.dumps({self.message(name): self._field(name, value) for name, value in fields.items()})

    def _field(self, name: str, value: object) -> object:
        if value is None or isinstance(value, bool | int | float):
            return value
        text = value if isinstance(value, str) else json.dumps(value)
        match name:
            case "statement":
                return self.statement(text)
            case "user" | "role" | "owner":
                return self.name(text)
            case "host" | "address" | "peer" | "client":
                return self.host(text)
            case "exception":
                return "\n".join(self._traceback(text))
            case _:
                return self.message(text)

    def _traceback(self, text: str) -> list[str]:
        """Return a traceback's frames and redacted messages, without the lines of source code."""
        kept, is_source = [], False
        for line in text.splitlines():
            frame = _FRAME.match(line)
            if frame is not None:
                file, number, function = frame.groups()
                kept.append(f'  File "{self._module(file)}", line {number}, in {self.message(function)}')
            elif not is_source:
                kept.append(self.message(line))
            is_source = frame is not None
        return kept

    def _module(self, file: str) -> str:
        """Return the path of a source file from its package on. Without a package, return the file's redacted name."""
        parts = Path(file).parts
        starts = [number for number, part in enumerate(parts) if part in _PACKAGES]
        return "/".join(parts[starts[-1] :]) if starts else self.message(os.path.basename(file))

    def _hash(self, text: str) -> str:
        return hashlib.blake2b(text.encode(), key=self._key, digest_size=_HASH_BYTES).hexdigest()


@cache
def words_of_messages() -> frozenset[str]:
    """Return the words of the messages in Saros's source, and of the system's errors, in lower case."""
    words = {word for number in range(1, 200) for word in re.findall(r"\w+", os.strerror(number))}
    for package in _PACKAGES:
        found = find_spec(package)
        assert found is not None
        for folder in found.submodule_search_locations or ():
            for path in Path(folder).rglob("*.py"):
                if "generated" not in path.parts:
                    words |= _words_in(path.read_text(encoding="utf-8"))
    return frozenset(word.lower() for word in words)


def _words_in(source: str) -> set[str]:
    texts = (_FIELD.sub(" ", text or name) for text, name in _TEXTS.findall(source))
    return {word for text in texts for word in re.findall(r"\w+", text)}


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_local(host: str) -> bool:
    if host in ("localhost", ""):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
