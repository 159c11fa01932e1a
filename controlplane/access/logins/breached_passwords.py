"""Refusal of passwords of known breaches, by a local file and without a network.

The file has the format of the list of Have I Been Pwned (`haveibeenpwned-downloader`): a line
`<SHA-1 in hexadecimal>:<count>` per password, in the order of the hashes. It has tens of GB, so it
is searched on the disk: a search reads about forty short lines.
"""

import hashlib
import logging
import os
import re
from pathlib import Path
from typing import BinaryIO, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from controlplane.installation.env import EnvironmentValueError

logger = logging.getLogger(__name__)

VARIABLE: Final = "WEIR_BREACHED_PASSWORDS"
# A line has 40 digits, a colon, a count, and one or two bytes for its end.
MAX_LINE: Final = 80
# Lines that the start compares: a few reads detect a file in another order.
SAMPLES: Final = 64
_LINE: Final = re.compile(rb"([0-9A-Fa-f]{40})(:\d{1,20})?\r?\n?")
_CODE: Final = "password_of_breach"


class BadListError(ValueError):
    """The file is not a list of hashes in order."""


class BreachedPasswordsValidator:
    """Refuses passwords of the list; accepts all without a list."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Raise `ValidationError` if the list has the password, or cannot be read."""
        if not settings.BREACHED_PASSWORDS:
            return
        try:
            is_known = contains(Path(settings.BREACHED_PASSWORDS), password)
        except (OSError, BadListError) as error:
            logger.exception("%s cannot be searched", VARIABLE)
            text = (
                "The list of breached passwords cannot be read: ask an administrator to correct"
                f" {VARIABLE}"
            )
            raise ValidationError(text, code="breach_list_unreadable") from error
        if is_known:
            text = "The password is known from a breach of another site: choose another"
            raise ValidationError(text, code=_CODE)

    def get_help_text(self) -> str:
        """Return the rule for people."""
        return "The password is not in the list of known breaches."


def check() -> None:
    """Raise `EnvironmentValueError` if the configured list is unreadable or of another format."""
    given = settings.BREACHED_PASSWORDS
    if not given:
        return
    try:
        _check_samples(Path(given))
    except OSError as error:
        wanted = f"cannot be read: {error.strerror or error}"
        raise EnvironmentValueError(VARIABLE, given, wanted) from None
    except BadListError as error:
        raise EnvironmentValueError(VARIABLE, given, str(error)) from None


def _check_samples(path: Path) -> None:
    """Read lines at equal distances. Raises `OSError`, `BadListError` unless they are in order."""
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        _require_lines(size)
        before = b""
        for number in range(SAMPLES):
            offset, line, _ = _line_from(file, number * size // SAMPLES, size)
            if offset < size and line < before:
                raise BadListError(_out_of_order(offset))
            before = line


def contains(path: Path, password: str) -> bool:
    """Return True if the list has the password. Raises `OSError`, `BadListError`."""
    digest = hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper().encode()
    with path.open("rb", buffering=0) as file:
        return _search(file, os.fstat(file.fileno()).st_size, digest)


def _search(file: BinaryIO, size: int, digest: bytes) -> bool:
    """Search the line of a digest by bisection of the offsets at which lines start."""
    _require_lines(size)
    # The line starts in [start, stop).
    start, stop = 0, size
    low, high = b"", b"G"
    while start < stop:
        middle = (start + stop) // 2
        offset, line, after = _line_from(file, middle, size)
        if offset >= stop:
            # No line starts between the middle and the stop.
            stop = middle
            continue
        if not low <= line <= high:
            raise BadListError(_out_of_order(offset))
        if line == digest:
            return True
        if line < digest:
            start, low = after, line
        else:
            stop, high = middle, line
    return False


def _require_lines(size: int) -> None:
    if size == 0:
        raise BadListError("must have lines of a SHA-1 and a count: the file is empty")


def _out_of_order(offset: int) -> str:
    return f"must be in the order of its hashes: see byte {offset}"


def _line_from(file: BinaryIO, position: int, size: int) -> tuple[int, bytes, int]:
    """Return the first line that starts at a position or after it: offset, hash, and its end.

    At the end of the file the offset is the size.
    """
    first = max(0, position - 1)
    file.seek(first)
    block = file.read(2 * MAX_LINE)
    skipped = 0
    if position > 0:
        end = block.find(b"\n", 0, MAX_LINE)
        if end < 0 and first + len(block) < size:
            raise BadListError(f"must have lines of a SHA-1 and a count: see byte {first}")
        skipped = len(block) if end < 0 else end + 1
    offset = first + skipped
    if offset >= size:
        return size, b"", size
    line = block[skipped:].partition(b"\n")[0] + b"\n"
    matched = _LINE.fullmatch(line)
    if matched is None:
        raise BadListError(f"must have lines of a SHA-1 and a count: see byte {offset}")
    return offset, matched[1].upper(), offset + len(line)
