"""No text of a user is a formula, whatever it begins with; numbers stay numbers."""

import csv
import io
import re
import unicodedata
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controlplane.formats.csv_lines import csv_cell, csv_lines

STARTS = ["=", "+", "-", "@", "=", "+", "-", "@", "﹦", "﹢", "﹣", "﹫"]
BEFORE = [
    "",
    " ",
    "\t",
    "\r",
    "\n",
    "\u00a0",
    "\u3000",
    "\u200b",
    "\ufeff",
    "'",
    '"',
    ' "\t',
    "\x00",
    "\u2028",
]


def cells(row: list[Any]) -> list[str]:
    (read,) = csv.reader(io.StringIO(csv_lines([row]), newline=""))
    return read


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("start", STARTS)
def test_a_formula_is_a_text(start: str, before: str) -> None:
    text = f"{before}{start}HYPERLINK(A1)"
    assert cells([text, {"a": 1}, [text]])[0] == f"'{text}"


@pytest.mark.parametrize("text", ["\tx", "\rx", "\nx"])
def test_what_may_begin_another_cell_is_escaped(text: str) -> None:
    assert cells([text]) == [f"'{text}"]


@given(st.text(max_size=20))
@example("=1")
@example("\t@x")
def test_no_cell_begins_as_a_formula(text: str) -> None:
    (cell,) = cells([text])
    assert cell in (text, f"'{text}")
    if cell == text and not re.fullmatch(r"[+-]?[\d.eE+-]+", text):
        shown = unicodedata.normalize("NFKC", text).strip().lstrip("'\"").strip()
        assert not shown.startswith(("=", "+", "-", "@"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-1.5, "-1.5"), (-3, "-3"), (Decimal("-0.10"), "-0.10"), (1e-7, "1e-07"), (True, "True"),
        ("-1.5", "-1.5"), ("+2e-3", "+2e-3"), (None, ""), ("Kiel - Bremen", "Kiel - Bremen"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        ({"a": "=1"}, '{"a": "=1"}'),
    ],
)  # fmt: skip
def test_numbers_and_other_values_stay(value: Any, shown: str) -> None:
    assert cells([value]) == [shown]


@pytest.mark.parametrize("text", ["-1+2", "-1e5()", "+1 2", "--1", "-1\n", "1=1"])
def test_a_number_with_more_is_a_text(text: str) -> None:
    assert csv_cell(text) == (text if text[0] == "1" else f"'{text}")
