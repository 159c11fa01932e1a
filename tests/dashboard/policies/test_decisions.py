"""The headline of the page of decisions."""

from datetime import UTC, datetime

import pytest

from controlplane.models import Decision
from dashboard.policies.decisions import DecisionRow, decision_row, decisions_headline

pytestmark = pytest.mark.nightly("pages")

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def row(loop: str, code: str, text: str = "why") -> DecisionRow:
    return decision_row(
        Decision(loop=loop, code=code, text=text, count=1, first_at=NOW, last_at=NOW)
    )


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
