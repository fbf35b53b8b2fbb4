"""Credentials of an HTTP request.

    Authorization: Basic base64(user:password)
    Authorization: Bearer TOKEN
    Authorization: Token TOKEN                    sent by clients of InfluxDB 2
    Authorization: Token user:password            sent by clients of InfluxDB 1
    ?u=user&p=password                            only for routes with `query_credentials`

Pure: any thread.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from saros_server.http.errors import HttpError

#: Credentials longer than this are refused without being decoded.
_CHARACTERS_MAX = 8_192


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user and a password, or a token in place of the password. With a token, the user may be empty.

    For an anonymous client, all fields are empty.
    """

    user: str = ""
    password: str = field(default="", repr=False)

    def digest(self, key: bytes, *context: str) -> bytes:
        """Return a keyed hash of the credentials and of the context of their use, such as the client's address."""
        parts = [part.encode("utf-8", "surrogatepass") for part in (self.user, self.password, *context)]
        return hmac.digest(key, b"".join(len(part).to_bytes(8, "big") + part for part in parts), "sha256")


ANONYMOUS = Credentials()


def credentials_of(authorization: str | None, query: Mapping[str, str]) -> Credentials:
    """Return the credentials of a request, which may also be among its `query` parameters. Raises HttpError 401."""
    if authorization is None:
        return Credentials(query["u"], query.get("p", "")) if "u" in query else ANONYMOUS
    scheme, _, value = authorization.strip().partition(" ")
    value = value.strip()
    if len(value) > _CHARACTERS_MAX:
        raise unauthorized("the credentials are too long")
    match scheme.lower():
        case "basic":
            return _from_pair(_decoded(value))
        case "bearer":
            return Credentials("", value)
        case "token":
            return _from_pair(value) if ":" in value else Credentials("", value)
        case _:
            message = f"authorization {scheme[:20]!r} is not supported: use Basic (user and password) or Bearer (token)"
            raise unauthorized(message)


def unauthorized(message: str, code: int = 801) -> HttpError:
    """Return the error for a request that has no usable credentials."""
    return HttpError(401, message, code)


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise unauthorized("the credentials are not base64 of user:password in UTF-8") from error


def _from_pair(text: str) -> Credentials:
    user, colon, password = text.partition(":")
    if not colon:
        raise unauthorized("the credentials are not user:password")
    return Credentials(user, password)
