"""Faults of the text of CSV that Arrow's reader tolerates, although they lose records."""

import numpy as np

from controlplane.errors import BadBody, Invalid
from controlplane.wire.schema import MAX_COLUMNS

_BOM = b"\xef\xbb\xbf"
_QUOTE = ord('"')
_BREAKS = (ord(","), ord("\n"), ord("\r"))
# What other programs write between cells.
_SEPARATORS = {b";": "semicolons", b"\t": "tabs", b"|": "bars"}


def check_csv(body: bytes) -> None:
    """Raise `Invalid` for a quotation mark that is not where RFC 4180 allows one.

    A cell in quotes ends with its quotation mark, and another cell has none. Raises `BadBody` for
    text that is not UTF-8, or has a NUL, and for a header that names no stream's columns.
    """
    check_utf8(body)
    _check_header(body.partition(b"\n")[0].partition(b"\r")[0])
    if (nul := body.find(b"\0")) >= 0:
        raise BadBody(f"The body is not CSV: it has a NUL character ({_place(body, nul)})")
    text = np.frombuffer(body, np.uint8, offset=len(_BOM) if body.startswith(_BOM) else 0)
    quotes = np.flatnonzero(text == _QUOTE)
    if not len(quotes):
        return
    opening, closing = quotes[::2], quotes[1::2]
    # Two quotation marks within quotes close the cell and open it again.
    is_start = np.isin(text[opening - 1], _BREAKS) | (opening == 0)
    is_start[1:] |= opening[1:] == closing[: len(opening) - 1] + 1
    after = text[np.minimum(closing + 1, len(text) - 1)]
    is_end = np.isin(after, (*_BREAKS, _QUOTE)) | (closing + 1 == len(text))
    faults = [
        (opening[~is_start], "is within a cell without quotes: write the cell in quotes, and it "
                             "twice"),
        (closing[~is_end], "ends a cell, and text follows it: within quotes write it twice"),
        (opening[len(closing):], "is never closed"),
    ]  # fmt: skip
    first = min(((int(places[0]), why) for places, why in faults if len(places)), default=None)
    if first is not None:
        place = _place(body, first[0] + len(body) - len(text))
        raise Invalid({"records": [f"The quotation mark in {place} {first[1]}"]})


def _check_header(line: bytes) -> None:
    cells = line.count(b",") + 1
    if cells > MAX_COLUMNS:
        what = f"has {cells:,} cells, and a stream has at most {MAX_COLUMNS} columns"
        raise BadBody(f"The body is not CSV of records: its header {what}")
    for separator, name in _SEPARATORS.items():
        if cells == 1 and separator in line:
            what = f"separates its cells with {name}: separate them with commas"
            raise BadBody(f"The body is not CSV: its header {what}")


def check_utf8(body: bytes) -> None:
    """Raise `BadBody` for bytes that are not UTF-8, with their place."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise BadBody(f"The body is not UTF-8 text ({_place(body, error.start)})") from None


def _place(body: bytes, index: int) -> str:
    """Return the line and the column of a byte, for people."""
    line, begin = body.count(b"\n", 0, index) + 1, body.rfind(b"\n", 0, index)
    return f"line {line}, column {index - begin}"
