"""The errors of codecs; the TsFile reader turns them into errors that name the file."""

from __future__ import annotations

from saros_storage.base.types import DataType, Encoding


class DecodeError(ValueError):
    """The bytes violate the rules of the encoding or compressor."""


class UnsupportedEncoding(DecodeError):
    """Saros does not read (or write) this encoding of this type."""

    def __init__(self, encoding: Encoding, type_: DataType) -> None:
        super().__init__(f"encoding {encoding.name} of {type_.name}")
        self.encoding = encoding
        self.type = type_
