"""Each check of a claim on tables whose outcome is known."""

from collections.abc import Mapping, Sequence

import pytest

from algorithms.lab.claims import Claim, Outcome, Results, decide
from algorithms.lab.claims.checks import (
    Below,
    Close,
    Course,
    Each,
    GapGrows,
    Limited,
    Steady,
    SubLinear,
    TimesBetter,
)
from algorithms.lab.tables import Cell, Table

COLUMNS = ("x", "series", "seed", "y")
Curves = Mapping[str, Sequence[float | None]]


def table(curves: Curves, *others: Curves) -> Table:
    """Return a table with the values of the series at x = 1, 2, 3, …; a mapping per seed."""
    rows: list[tuple[Cell, ...]] = [
        (float(x), name, seed, y)
        for seed, drawn in enumerate((curves, *others))
        for name, values in drawn.items()
        for x, y in enumerate(values, start=1)
    ]
    return Table(COLUMNS, tuple(rows))


RISING, FALLING, FLAT = [1.0, 2.0, 4.0], [4.0, 2.0, 1.0], [2.0, 2.0, 2.1]
CURVES = {"up": RISING, "down": FALLING, "flat": FLAT, "high": [10.0, 20.0, 40.0]}


@pytest.mark.parametrize(
    ("check", "outcome"),
    [
        (Course("y", ("up", "high")), "holds"),
        (Course("y", ("up", "down")), "does not hold"),
        (Course("y", ("down",), rises=False), "holds"),
        (Course("y", ("up",), least=5.0), "does not hold"),
        (Course("y", ("up",), least=4.0), "holds"),
        (Below("y", "up", ("high",), factor=10.0), "holds"),
        (Below("y", "up", ("high",), factor=10.1), "does not hold"),
        (Below("y", "up", ("down",)), "does not hold"),
        (Below("y", "up", ("down",), below=2.0), "holds"),
        (Below("y", "up", ("down",), above=7.0), "not testable"),
        (TimesBetter("y", "up", "high", 10.0), "holds"),
        (TimesBetter("y", "down", "high", 40.0), "holds"),
        (TimesBetter("y", "down", "high", 41.0), "does not hold"),
        (Close("y", "up", "flat", 0.5), "does not hold"),
        (Close("y", "up", "flat", 1.0), "holds"),
        (Steady("y", ("flat",), 0.05), "holds"),
        (Steady("y", ("flat", "up"), 0.05), "does not hold"),
        (SubLinear("y", ("flat",)), "holds"),
        (SubLinear("y", ("up",)), "does not hold"),
        (Limited("y", ("flat",), most=2.1), "holds"),
        (Limited("y", ("flat",), most=2.05), "does not hold"),
        (Limited("y", ("up",), least=2.0, above=2.0), "holds"),
        (Limited("y", ("up",), least=2.0), "does not hold"),
        (Limited("y", ("up",), least=2.0, above=9.0), "not testable"),
        (GapGrows("y", "down", "high"), "holds"),
        (GapGrows("y", "up", "high"), "does not hold"),
        (Each((Course("y", ("up",)), Steady("y", ("flat",), 0.05))), "holds"),
        (Each((Course("y", ("up",)), Course("y", ("down",)))), "does not hold"),
        (Each((Course("y", ("up",)), Course("y", ("none",)))), "not testable"),
        (Below("y", "none", ("up",)), "not testable"),
    ],
)  # fmt: skip
def test_a_check_decides_a_table(check: Course, outcome: str) -> None:
    """Curves of one seed, by hand."""
    finding = check(Results(table(CURVES), "x"))
    assert finding.outcome == outcome
    assert finding.evidence


def test_a_claim_that_one_seed_contradicts_does_not_hold() -> None:
    """The mean alone would hold: 1.5 against 2."""
    results = Results(table({"a": [1.0], "b": [3.0]}, {"a": [2.0], "b": [1.0]}), "x")
    assert results.curve("a", "y") == {1.0: 1.5}
    assert Below("y", "a", ("b",))(results).outcome is Outcome.FAILS


def test_a_course_may_dip_by_a_part_of_its_range() -> None:
    """Noise between neighbours, not between the ends."""
    results = Results(table({"a": [1.0, 3.0, 2.9, 5.0]}), "x")
    assert Course("y", ("a",), dip=0.05)(results).outcome is Outcome.HOLDS
    assert Course("y", ("a",), dip=0.01)(results).outcome is Outcome.FAILS


def test_missing_values_do_not_count() -> None:
    """A curve with one value has no course."""
    results = Results(table({"a": [None, 3.0, None]}), "x")
    finding = Course("y", ("a",))(results)
    assert finding.outcome is Outcome.UNTESTED
    assert "2 values" in finding.evidence


def test_evidence_has_the_figures_that_decided() -> None:
    """The closest pair of a comparison that holds, the worst of one that does not."""
    claim = Claim("figure 1", "Up is lower.", Below("y", "up", ("high", "down")))
    (decided,) = decide([claim], table(CURVES), "x")
    assert decided.claim is claim
    assert decided.finding.evidence == "Worst at 3: up 4 against 1 of down"
