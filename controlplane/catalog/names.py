"""Rules for names: a name is one segment of a URL."""

import re

MAX_LENGTH = 100
# The API has words of its own beside the names of queries.
RESERVED = frozenset(
    {"bulk", "check", "end", "end-matching", "explain", "new", "preview", "restore"}
)
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
