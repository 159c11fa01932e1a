"""The outcomes of a paper's claims on a run, counted for its headline."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from algorithms.lab.claims import Decided, Finding, Outcome, decide
from algorithms.lab.experiments import Experiment, Table, series_title


@dataclass(frozen=True)
class ClaimOutcomes:
    """The claims of an experiment with their findings on one table."""

    decided: tuple[Decided, ...]

    def count(self, outcome: Outcome) -> int:
        """Return the number of claims with an outcome."""
        return sum(item.finding.outcome is outcome for item in self.decided)

    @property
    def holding(self) -> int:
        """Return the number of claims that hold."""
        return self.count(Outcome.HOLDS)

    @property
    def tested(self) -> int:
        """Return the number of claims that the table decides."""
        return len(self.decided) - self.count(Outcome.UNTESTED)

    @property
    def failing(self) -> tuple[Decided, ...]:
        """Return the claims that do not hold."""
        return tuple(item for item in self.decided if item.finding.outcome is Outcome.FAILS)


def outcomes_of(
    experiment: Experiment, table: Table, parameters: Mapping[str, Any]
) -> ClaimOutcomes:
    """Return the outcomes of an experiment's claims on a table.

    `parameters`: those of the run; of smaller workloads than the claims need, all are UNTESTED.
    """
    lacking = _too_small(experiment, parameters)
    if lacking:
        finding = Finding(Outcome.UNTESTED, lacking)
        return ClaimOutcomes(tuple(Decided(claim, finding) for claim in experiment.claims))
    title = partial(series_title, experiment.planner, experiment.name)
    return ClaimOutcomes(decide(experiment.claims, table, experiment.x.name, title))


def _too_small(experiment: Experiment, parameters: Mapping[str, Any]) -> str:
    """Return what a workload has too little of for the claims, "" for a sufficient one."""
    fields = {field.name: field for field in experiment.parameters.fields()}
    values = {name: field.default for name, field in fields.items()} | dict(parameters)
    texts = [
        f"{fields[name].title}: {value:,g}, at least {least:,g} is needed"
        for name, least in experiment.claim_scale
        if isinstance(value := values[name], int | float) and value < least
    ]
    return "; ".join(texts)
