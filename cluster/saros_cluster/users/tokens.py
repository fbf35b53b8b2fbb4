"""API tokens as the users' state stores them, with a hash of the secret and never the secret itself.

Pure values: any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Token:
    """A secret with which a user can log in without the password. The session has the user's rights."""

    user: str
    #: Unique among the user's tokens.
    name: str
    #: SHA-256 of the secret, in hexadecimal.
    digest: str = field(repr=False)
    #: Milliseconds since 1970.
    created_ms: int
    #: The token is valid before this time; None if it never expires.
    expires_ms: int | None = None
    #: The day of the last login, in days since 1970; None before the first one.
    last_used_day: int | None = None

    def is_valid_at(self, now_ms: int) -> bool:
        """Return whether the token has not expired."""
        return self.expires_ms is None or now_ms < self.expires_ms

    def to_json(self) -> list[object]:
        """Return JSON values."""
        return [self.user, self.name, self.digest, self.created_ms, self.expires_ms, self.last_used_day]

    @staticmethod
    def from_json(words: object) -> Token:
        """Parse the values of `to_json`. Raises TypeError, ValueError."""
        if not isinstance(words, list):
            raise TypeError("expected a list for a token")
        user, name, digest, created_ms, expires_ms, last_used_day = words
        expires = None if expires_ms is None else int(expires_ms)
        return Token(
            str(user),
            str(name),
            str(digest),
            int(created_ms),
            expires,
            None if last_used_day is None else int(last_used_day),
        )


def tokens_of(tokens: Mapping[str, Token], user: str) -> list[Token]:
    """Return the tokens of a user, sorted by name."""
    return sorted((token for token in tokens.values() if token.user == user), key=lambda token: token.name)
