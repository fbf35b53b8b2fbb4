"""The format of the sync tool's files that are replaced as a whole: a header line, then JSON.

The header line holds the kind of file, the format's version, the CRC-32 of the JSON and its bytes:

    saros-sync last_local_files 1 5f3a90c1 812
    {...}

Pure: any thread.
"""

from __future__ import annotations

import json
import re
import zlib

from saros_storage.base.errors import CorruptFile, NewerFormat

_VERSION = 1
_FIRST_LINE = re.compile(rb"saros-sync ([a-z_]{1,32}) (\d{1,4}) ([0-9a-f]{8}) (\d{1,19})\n")


def encode_framed(kind: str, words: object) -> bytes:
    """Return the file's bytes. `words` must be JSON values."""
    body = json.dumps(words, ensure_ascii=False, separators=(",", ":")).encode()
    return b"saros-sync %s %d %08x %d\n" % (kind.encode(), _VERSION, zlib.crc32(body), len(body)) + body


def decode_framed(path: str, kind: str, data: bytes) -> dict[str, object]:
    """Return the JSON object of a file. Raises CorruptFile, NewerFormat."""
    match = _FIRST_LINE.match(data)
    if match is None or match.group(1).decode() != kind:
        raise CorruptFile(path, 0, f"not a file of kind {kind}")
    if int(match.group(2)) > _VERSION:
        raise NewerFormat(path)
    body = data[match.end() :]
    if len(body) != int(match.group(4)) or zlib.crc32(body) != int(match.group(3), 16):
        raise CorruptFile(path, match.end(), "checksum mismatch")
    words = json.loads(body)
    if not isinstance(words, dict):
        raise CorruptFile(path, match.end(), "not an object")
    return words
