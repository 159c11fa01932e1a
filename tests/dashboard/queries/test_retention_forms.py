"""A retention in a form: a number with a unit, and a number of windows."""

import pytest

from dashboard.queries.retention_forms import retention_of, retention_values

pytestmark = pytest.mark.nightly("pages")

DEFAULT = 600, 1_000


@pytest.mark.parametrize(
    ("seconds", "number", "unit"),
    [
        (604_800, "7", "days"),
        (7_200, "2", "hours"),
        (5_400, "90", "minutes"),
        (61, "61", "seconds"),
    ],
)
def test_a_retention_is_shown_in_its_longest_unit(seconds: int, number: str, unit: str) -> None:
    shown = retention_values(seconds, 50)
    assert shown == {"retention": number, "retention_unit": unit, "retention_windows": "50"}
    assert retention_of(shown, DEFAULT) == (seconds, 50, {})


@pytest.mark.parametrize(
    ("number", "unit", "seconds"),
    [("1.5", "days", 129_600), (" 1,000 ", "seconds", 1_000), ("0.5", "minutes", 30)],
)
def test_parts_of_a_unit_and_grouped_digits_are_read(number: str, unit: str, seconds: int) -> None:
    values = {"retention": number, "retention_unit": unit}
    assert retention_of(values, DEFAULT) == (seconds, DEFAULT[1], {})


@pytest.mark.parametrize("number", ["", "x", "0.1", "nan", "Infinity", "1e9", "9" * 13])
def test_what_is_no_number_of_seconds_has_a_fault(number: str) -> None:
    values = {"retention": number, "retention_unit": "seconds"}
    seconds, windows, faults = retention_of(values, DEFAULT)
    assert (seconds, windows, list(faults)) == (*DEFAULT, ["retention_s"])


def test_an_unknown_unit_has_a_fault() -> None:
    assert list(retention_of({"retention": "1", "retention_unit": "weeks"}, DEFAULT)[2]) == [
        "retention_s"
    ]


@pytest.mark.parametrize("windows", ["", "1.5", "-1", "٣", "1" * 10])
def test_what_is_no_number_of_windows_has_a_fault(windows: str) -> None:
    found = retention_of({"retention_windows": windows}, DEFAULT)
    assert found == (*DEFAULT, {"retention_windows": ["Enter a whole number"]})


def test_a_form_without_the_fields_has_the_default() -> None:
    assert retention_of({}, DEFAULT) == (*DEFAULT, {})
