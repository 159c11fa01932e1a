"""The only function that removes passwords from URLs, for people, logs, audit log and exports."""

import re
from typing import Final

# What replaces a password.
HIDDEN: Final = "***"
# `scheme://user:password@host`: the password ends at the last @ of the authority, as in urlsplit.
# The shape is searched in any text, so an error message that quotes a URL is cleaned as well.
_PASSWORD: Final = re.compile(r"(?<=://)([^\s/@:'\"]{0,200}):[^\s/'\"]{0,1000}(?=@)")
# `?password=…`, which clients of Redis and PostgreSQL accept.
_PARAMETER: Final = re.compile(
    r"(?<=[?&;])([\w.\-]{0,40}?(?:passw|secret|token|credential)[\w.\-]{0,40})=[^\s&;'\"]*",
    re.IGNORECASE,
)


def without_password(text: str) -> str:
    """Return a URL, or a text with URLs, in which `***` replaces each password."""
    if "://" not in text:
        return text
    return _PARAMETER.sub(rf"\1={HIDDEN}", _PASSWORD.sub(rf"\1:{HIDDEN}", text))
