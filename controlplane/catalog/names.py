"""What may be a name: something that stands in a URL as one segment."""

import re

MAX_LENGTH = 100
# The API has words of its own beside the names of queries.
RESERVED = frozenset({"bulk", "check", "end", "new"})
_ALLOWED = re.compile(r"[^\W_][\w.:@+-]*")


def faults(name: str) -> list[str]:
    """Return what is wrong with a name, nothing for a good one."""
    if not name:
        return ["Give a name"]
    if len(name) > MAX_LENGTH:
        return [f"At most {MAX_LENGTH} characters, not {len(name)}"]
    if not _ALLOWED.fullmatch(name):
        return ["Letters, digits and . _ : @ + - only, beginning with a letter or digit"]
    return [f"{name} is a word of the API"] if name in RESERVED else []
