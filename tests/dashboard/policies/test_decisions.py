"""The headline of the page of decisions."""

from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane.models import Decision
from dashboard.policies.decisions import DecisionRow, decision_row, decisions_headline

pytestmark = pytest.mark.nightly("pages")

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def row(loop: str, code: str, text: str = "why", **values: Any) -> DecisionRow:
    return decision_row(
        Decision(loop=loop, code=code, text=text, count=1, first_at=NOW, last_at=NOW, **values)
    )


def test_what_cannot_be_measured_has_no_number() -> None:
    nothing = row("skew", "within", number=0.0, unit="share")
    assert (nothing.number, nothing.limit, nothing.is_quiet) == ("", "", True)
    low = row("skew", "within", number=0.0, limit=0.2, unit="share")
    assert (low.number, low.limit) == ("0 %", "limit 20 %")


@pytest.mark.parametrize(
    ("codes", "what", "why", "grade"),
    [
        (["within", "balanced"], "All 2 monitors find nothing to do", "", "good"),
        (["no_data", "no_data"], "No data: skew, load", "why", ""),
        (["within", "no_data"], "1 of 2 monitors find nothing to do", "No data: load", "good"),
        (["no_data", "failed"], "1 of 2 monitors needs attention: load", "why.", "warn"),
    ],
)
def test_a_loop_without_data_is_not_satisfied(
    codes: list[str], what: str, why: str, grade: str
) -> None:
    rows = [row(loop, code) for loop, code in zip(("skew", "load"), codes, strict=True)]
    shown = decisions_headline(rows)
    assert (shown.what, shown.why, shown.grade) == (what, why, grade)
