"""The only function that removes secrets from texts: URLs, errors, descriptions, logs, exports.

`controlplane/wire/redaction.py` is a link to this file: a foreign job gets `workers/attach` alone,
so this module imports nothing of Weir and is written for Python 3.9.
"""

from __future__ import annotations

import re
from typing import Final

# What replaces a secret.
HIDDEN: Final = "***"
# Names of secrets, with any beginning, as `spark.hadoop.fs.s3a.secret.key`.
_NAME: Final = (
    r"(?:passw(?:or)?d|passphrase|pwd|secret|credential|token(?!s(?![a-z]))|signature|authorization"
    r"|(?:api|access|account|private|shared|encryption|master|storage|signing)[._-]?key"
    r"|(?<![a-z0-9])(?:pass|sig)(?![a-z0-9]))[\w.-]{0,60}"
)
# Those that stand before a colon without quotation marks: "unexpected token: )" is not a secret.
_STRICT: Final = (
    r"(?:passw(?:or)?d|passphrase|pwd|secret|authorization|[_-]token|(?:api|access|account|private)"
    r"[._-]?key)[\w.-]{0,60}"
)
# In the parameters of a URL every key is a secret: `?key=…`, `;encryptKey=…`.
_KEY: Final = r"(?<=[?&;])[\w.-]{0,60}key"
# Between a name and its value, in URLs, properties, Python and Scala, also percent-encoded.
_EQUALS: Final = r"\s*(?:=>|->|=|%3D)\s*"
_QUOTES: Final = r"\\*[\"']"
# A value ends at its quotation mark, at its brace, or where the next parameter begins.
_VALUE: Final = (
    r"(?:(?P<quote>\\*[\"'])(?:(?!(?P=quote))(?:\\.|.))*|\{[^}]*\}?|"
    r"(?:(?:bearer|basic|digest|sharedkey|token)\s+)?(?:(?!%26|%3B)[^\s&;\"'<])+)"
)
# Texts with a secret: what `head` matches stays.
_FORMS: Final = tuple(re.compile(f"(?P<head>{head}){secret}", re.I | re.S) for head, secret in (
    (r"-----BEGIN [A-Z ]*PRIVATE KEY-----", r".*?(?=-----END|\Z)"),
    # A JAAS configuration is a sentence with options, up to its semicolon.
    (rf"sasl\.?jaas\.?config(?:{_QUOTES})?\s*(?:{_EQUALS}|[:,])\s*",
     r"(?:\\.|\"[^\"]*\"|'[^']*'|[^;\n\"'])+"),
    # `scheme://user:password@`: up to the last @ of the authority. A port is not a password.
    (r"://[^\s/@:'\"\[]{0,200}:(?!\d{1,5}(?:[/?#,]|$))",
     r"(?:[^\s/'\"]{0,1000}(?=@)|[^\s'\"]{0,1000}(?=@))"),
    (r"%3A%2F%2F(?:(?!%40|%3A)[^\s'\"]){0,200}%3A", r"[^\s'\"]{1,1000}?(?=%40)"),
    # `https://token@`; in other schemes a user alone is none, as the container in `abfss://`.
    (r"\bhttps?://", r"[^\s/@:'\"]{1,1000}(?=@)"),
    (r"jdbc:oracle:\w{1,20}:[^\s/@:'\"]{1,200}/", r"[^\s@'\"]{1,1000}(?=@)"),
    (rf"(?:{_NAME}|{_KEY})(?:{_QUOTES})?{_EQUALS}", _VALUE),
    (rf"{_NAME}{_QUOTES}\s*[:,]\s*", _VALUE),
    (rf"{_STRICT}\s*:\s*", _VALUE),
    # A tuple of Spark's settings, an element of XML, an option of a command.
    (rf"\([\w.-]{{0,60}}?{_NAME},", r"[^\s)]+"),
    (rf"{_NAME}>(?:\s*</name>\s*<value>)?", r"[^<]+"),
    (rf"{_NAME}</name>\s*<value>", r"[^<]+"),
    (r"--(?:password|passphrase|secret|token|api-key)\s+", r"[^\s\"']+"),
    (r"\bbearer\s+(?!(?:tokens?|auth\w*|schemes?|headers?|credentials?|or|and|of|is|in|for)\b)",
     r"[^\s\"',;)}\]]+"),
    (r"\bbasic\s+(?=\S*[0-9=])", r"[a-z0-9+/_-]{8,}={0,2}"),
    (r"\bcookie:\s*", r"[^\n'\"]+"),
    # Addresses of chats, whose path is the secret.
    (r"(?:hooks\.slack\.com/\w{1,20}|/api/webhooks/\d{1,30}|webhook\.office\.com/\w{1,20})/",
     r"[^\s'\"]+"),
))  # fmt: skip


def without_password(text: str) -> str:
    """Return a text in which `***` replaces each password, token and key of the forms above."""
    for form in _FORMS:
        text = form.sub(_hidden, text)
    return text


def _hidden(match: re.Match[str]) -> str:
    quote = match.groupdict().get("quote") or ""
    return f"{match['head']}{quote}{HIDDEN}"
