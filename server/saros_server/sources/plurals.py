"""Numbers with nouns in messages. Pure: any thread."""


def counted(number: int, what: str) -> str:
    """Return `1 file`, `2 files`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
