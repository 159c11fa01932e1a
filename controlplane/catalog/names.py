"""Rules for names: a name is one segment of a URL."""

import re

MAX_LENGTH = 100
# The API has words of its own in the place of the names of streams and queries.
RESERVED = frozenset(
    {
        "bulk", "check", "end", "end-matching", "explain", "infer", "new", "preview", "restore",
        "what-if",
    }
)  # fmt: skip
_ALLOWED = re.compile(r"[^\W_][\w.:@+-]*")


def faults(name: str) -> list[str]:
    """Return the faults of a name as messages."""
    if not name:
        return ["Give a name"]
    if len(name) > MAX_LENGTH:
        return [f"At most {MAX_LENGTH} characters, not {len(name)}"]
    if not _ALLOWED.fullmatch(name):
        return ["Letters, digits and . _ : @ + - only, beginning with a letter or digit"]
    return [f"{name} is a word of the API"] if name in RESERVED else []


def is_id(key: str) -> bool:
    """Return True if an address has an id in this place, and not a name: digits only."""
    return key.isascii() and key.isdigit()


def faults_of_stream(name: str) -> list[str]:
    """Return the faults of the name of a stream, whose addresses have its id or its name."""
    return ["Digits alone are an id: add a letter"] if is_id(name) else faults(name)
