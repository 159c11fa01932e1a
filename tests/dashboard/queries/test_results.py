"""Windows as rows and lines: decimals are numbers there, and NaN and infinities are gaps."""

from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane.catalog.computations import OutputColumn
from controlplane.results.estimates import ResultEstimate
from controlplane.results.values import KeyedWindow
from dashboard.figures.results import DrawnPoint, results_figure
from dashboard.queries.results import drawn_values, lines_of, result_rows

pytestmark = pytest.mark.nightly("pages")

COLUMNS = [
    OutputColumn("shop", "text", "key"),
    OutputColumn("revenue", "decimal", "aggregate"),
    OutputColumn("largest", "text", "aggregate"),
]


def window(minute: int, revenue: Any) -> KeyedWindow:
    start = datetime(2026, 11, 22, 10, minute, tzinfo=UTC)
    return KeyedWindow(start, {"shop": "Kiel"}, {"revenue": revenue, "largest": "12"}, 1)


def test_decimals_are_drawn_and_aligned_as_numbers() -> None:
    """Results have them as texts, so that no digit is lost."""
    windows = [window(1, "12.90"), window(0, "7.5")]
    assert drawn_values(COLUMNS) == ["revenue"]
    assert [point.value for point in lines_of(windows, "revenue")["Kiel"]] == [7.5, 12.9]
    first = result_rows(windows, COLUMNS)[0].cells
    assert [(cell.text, cell.is_number) for cell in first] == [
        ("Kiel", False), ("12.90", True), ("12", False),
    ]  # fmt: skip


def test_what_is_no_finite_number_is_a_gap() -> None:
    windows = [window(minute, one) for minute, one in enumerate(["NaN", "Infinity", None, 3, "x"])]
    assert [point.value for point in lines_of(windows, "revenue")["Kiel"]] == [
        None,
        None,
        None,
        3,
        None,
    ]


def test_a_single_window_stands_within_minutes() -> None:
    """And not within a millisecond, which is the width that Plotly would choose."""
    axis = results_figure({"a": [DrawnPoint(600_000, 1)], "b": [DrawnPoint(600_000, 2)]})["layout"][
        "xaxis"
    ]
    assert axis["range"] == [300_000, 900_000]
    assert (
        "range"
        not in results_figure({"a": [DrawnPoint(0, 1), DrawnPoint(60_000, 1)]})["layout"]["xaxis"]
    )


@pytest.mark.parametrize(
    ("values", "mode"),
    [
        ([1.0] * 20 + [None, 1.0, None] + [1.0] * 20, "lines+markers"),
        ([1.0] * 20 + [None] + [1.0] * 20, "lines"),
        ([1.0] * 6 + [None] * 9 + [1.0] * 5, "lines+markers"),
        ([1.0] * 6 + [None] * 9 + [1.0] * 6, "lines"),
    ],
)
def test_a_window_between_two_gaps_has_a_dot(values: list[float | None], mode: str) -> None:
    """No segment joins it to another one; empty points are no windows."""
    points = [DrawnPoint(n * 60_000, value) for n, value in enumerate(values)]
    assert results_figure({"a": points})["data"][0]["mode"] == mode


def test_ticks_have_prefixes_for_large_numbers_alone() -> None:
    """A half is 0.5, not 500m."""
    small = results_figure({"a": [DrawnPoint(0, 1), DrawnPoint(1, None)]})
    assert small["layout"]["yaxis"]["tickformat"] == ",.4~g"
    assert results_figure({"a": [DrawnPoint(0, -20_000)]})["layout"]["yaxis"]["tickformat"] == "~s"
    assert results_figure({})["layout"]["yaxis"]["tickformat"] == ",.4~g"


def sampled(kept: float | None, estimate: ResultEstimate | None = None) -> KeyedWindow:
    """Return a window whose records were dropped in part."""
    estimates = {} if estimate is None else {"revenue": estimate}
    return window(1, "12.90")._replace(kept=kept, estimates=estimates)


def test_estimates_are_marked_and_have_their_interval() -> None:
    windows = [
        sampled(0.25, ResultEstimate(51.6, 40.0, 1_234.5)), sampled(0.25, ResultEstimate(51.6)),
        sampled(None), window(1, "12.90"),
    ]  # fmt: skip
    rows = result_rows(windows, COLUMNS, is_scaled=True)
    assert [(row.kept, row.cells[1].text, row.cells[1].title) for row in rows] == [
        ("25 %", "≈ 51.6", "40 to 1,234 with 95 % confidence; 12.90 in the kept records"),
        ("25 %", "≈ 51.6", "12.90 in the kept records"),
        ("unknown", "12.90", "Of the kept records only"),
        ("", "12.90", ""),
    ]
    assert rows[0].cells[2].title == "Of the kept records only", "the largest value"
    computed = result_rows(windows, COLUMNS)[0].cells[1]
    assert (computed.text, computed.title) == ("12.90", "Of the kept records only")


def test_nearly_all_is_not_all() -> None:
    rows = result_rows([sampled(part) for part in (0.9999, 0.98, 0.004)], COLUMNS)
    assert [row.kept for row in rows] == ["> 99 %", "98 %", "0.4 %"]


def test_lines_are_of_the_estimates_if_values_are_scaled() -> None:
    windows = [sampled(0.25, ResultEstimate(51.6))]
    assert [point.value for point in lines_of(windows, "revenue", is_scaled=True)["Kiel"]] == [51.6]
    (scaled,) = lines_of(windows, "revenue", is_scaled=True)["Kiel"]
    (plain,) = lines_of(windows, "revenue")["Kiel"]
    assert (scaled.note, plain.note) == ("an estimate", "of the kept records only")
    drawn = results_figure({"Kiel": [scaled, DrawnPoint(0, 1)]})["data"][0]
    assert drawn["marker"]["symbol"] == ["circle-open", "circle"]
    assert [point.value for point in lines_of(windows, "revenue")["Kiel"]] == [12.9]


def test_many_windows_have_a_line_without_dots_from_zero_on() -> None:
    few, many = ([DrawnPoint(60_000 * at, at % 9) for at in range(n)] for n in (3, 40))
    assert results_figure({"a": few})["data"][0]["mode"] == "lines+markers"
    drawn = results_figure({"a": many})
    assert drawn["data"][0]["mode"] == "lines"
    assert drawn["layout"]["yaxis"]["rangemode"] == "tozero"
    high = [DrawnPoint(60_000 * at, 500 + at) for at in range(40)]
    assert results_figure({"a": high})["layout"]["yaxis"]["rangemode"] == "normal"
