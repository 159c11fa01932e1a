"""Whatever a user's text has: a record is one line, its traceback lines that begin no record."""

import io
import logging
import logging.config
from typing import Any

import pytest
from django.conf import settings
from hypothesis import example, given
from hypothesis import strategies as st

from controlplane.formats.log_lines import CONTINUED, MAX_LINE, LineFormatter, escaped
from controlplane.wire.errors import cause_line

FORGED = "\n2026-01-01 00:00:00,000 ERROR weir: the disk is full"
TEXTS = st.text(max_size=60) | st.text(
    "\n\r\t\x1b[0m\x7f\x85\u2028\u2029\u202e\u2066\ufeffa", max_size=30
)


def formatted(record: logging.LogRecord) -> str:
    """Return what the console of the settings writes."""
    configured: dict[str, Any] = settings.LOGGING
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    format_of = dict(configured["formatters"]["line"])
    assert format_of.pop("()").rpartition(".")[2] == LineFormatter.__name__
    handler.setFormatter(LineFormatter(format_of["format"], style=format_of["style"]))
    record.request_id = ""
    handler.emit(record)
    return stream.getvalue()


def record_of(
    message: str, *values: object, error: BaseException | None = None
) -> logging.LogRecord:
    info = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord("weir.test", logging.ERROR, "x", 1, message, values, info)


@given(TEXTS)
@example(FORGED)
@example("a\x1b[2K\x1b[1A")
@example("\ud800")
def test_a_record_is_one_printable_line(text: str) -> None:
    line = formatted(record_of("Refused %s", text))
    assert line.endswith("\n")
    assert line[:-1].isprintable()
    line.encode()


@given(TEXTS)
@example(FORGED)
@example("x\rTraceback (most recent call last):")
def test_every_line_of_a_traceback_is_marked(text: str) -> None:
    try:
        try:
            raise KeyError(text)
        except KeyError:
            raise ValueError(text) from None
    except ValueError as error:
        error.add_note(text)
        lines = formatted(record_of("failed", error=error)).removesuffix("\n").split("\n")
    assert lines[0].endswith(" ERROR weir.test: failed")
    assert len(lines) > 2
    assert all(line.startswith(CONTINUED) and line.isprintable() for line in lines[1:])


def test_a_line_is_bounded() -> None:
    assert len(escaped("x" * 10_000_000)) < MAX_LINE + 50
    assert len(escaped("\n" * 10_000_000)) < 2 * MAX_LINE + 50


@pytest.mark.parametrize("text", ["Bjørn überprüft 漢字 😀", "SELECT 'a' \\ \"b\"", ""])
def test_readable_texts_stay(text: str) -> None:
    assert escaped(text) == text


def test_the_cause_is_found_in_a_marked_traceback() -> None:
    """The agent reads it in the log of a driver."""
    try:
        raise RuntimeError("No space left on device")
    except RuntimeError as error:
        lines = formatted(record_of("the application failed", error=error)).splitlines()
    assert (
        cause_line([*lines, "2026-01-01 INFO weir: bye"]) == "RuntimeError: No space left on device"
    )


def test_all_handlers_of_the_settings_format_lines() -> None:
    configured: dict[str, Any] = settings.LOGGING
    assert {handler["formatter"] for handler in configured["handlers"].values()} == {"line"}
