"""Estimates of runs against the limits of the Lab."""

from collections.abc import Sequence
from typing import Any

from algorithms.estimates import Estimate
from algorithms.lab.experiments import Experiment
from algorithms.reductions import reducible
from controlplane.planning.estimates import too_expensive
from controlplane.processes.isolation.limits import lab_limits


def estimate_run(
    chosen: Experiment, parameters: Any, values: Sequence[float], series: Sequence[str]
) -> Estimate:
    """Return the estimate of a run of the Lab. Raises `TooExpensive` beyond the limits."""
    need = chosen.estimate(parameters, values, series)
    limits = lab_limits()
    if not need.exceeds(limits.memory_bytes, limits.seconds):
        return need
    given = parameters.to_mapping()
    names = reducible(
        [field for field in chosen.parameters.fields() if field.name != chosen.x.name],
        given,
        lambda changed: chosen.estimate(chosen.parameters.from_mapping(changed), values, series),
    )
    largest = chosen.estimate(parameters, [min(values)], series)
    if largest.bytes < need.bytes / 2 or largest.seconds < need.seconds / 2:
        names.append("values")
    raise too_expensive(need, limits, names, "values")
