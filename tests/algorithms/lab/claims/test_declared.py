"""The declared claims agree with their experiments and with docs/papers.md."""

import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from algorithms.lab.claims import Claim
from algorithms.lab.claims.checks import Each
from algorithms.lab.experiment import Experiment, with_claims
from algorithms.lab.experiments import EXPERIMENTS

PAPERS = Path(__file__).resolve().parents[4] / "docs" / "papers.md"
DECLARED = [
    (item, claim) for known in EXPERIMENTS.values() for item in known for claim in item.claims
]


def checks_of(check: Any) -> list[Any]:
    return (
        [part for inner in check.checks for part in checks_of(inner)]
        if isinstance(check, Each)
        else [check]
    )


@pytest.mark.parametrize(("item", "claim"), DECLARED)
def test_a_claim_names_series_and_measures_of_its_experiment(
    item: Experiment, claim: Claim
) -> None:
    """Series of the experiment by default, so that a default run tests every claim."""
    for check in checks_of(claim.check):
        assert is_dataclass(check)
        values = {field.name: getattr(check, field.name) for field in fields(check)}
        assert values.pop("y") in item.measures
        named = [part for name, value in values.items() for part in _names(value)]
        assert named
        assert set(named) <= set(item.series)
        for low, high in [(values.get("above", 0.0), values.get("below", 1e9))]:
            assert any(low <= value <= high for value in item.values)


def _names(value: Any) -> list[str]:
    if isinstance(value, tuple):
        return list(value)
    return [value] if isinstance(value, str) else []


def test_every_claim_of_a_paper_has_its_row_in_the_documentation() -> None:
    """Where the measured figures are."""
    rows = re.findall(r"^\| ([^|]+) \|", PAPERS.read_text("utf-8"), flags=re.MULTILINE)
    missing = [
        (item.name, claim.entry)
        for item, claim in DECLARED
        if claim.entry and not any(row.startswith(claim.entry) for row in rows)
    ]
    assert missing == []


def test_every_figure_of_a_paper_has_a_claim() -> None:
    """Experiments of ours, on recorded trips and by load level, have none."""
    without = {item.name for known in EXPERIMENTS.values() for item in known if not item.claims}
    assert without == {"levels"}


def test_claims_of_an_unknown_experiment_are_refused() -> None:
    """A typing error would leave a figure without claims."""
    item, claim = DECLARED[0]
    with pytest.raises(ValueError, match="figure_99"):
        with_claims((item,), {"figure_99": (claim,)}, {})
