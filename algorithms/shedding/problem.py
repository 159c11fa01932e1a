"""Shedding problems and plans."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from algorithms.errors import BadProblem
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.network import ARROW, Edge, Network, check_number
from algorithms.vocabulary import Floats


@dataclass(frozen=True)
class SheddingProblem:
    """A network at input rates, in records per unit of time. Raises `BadProblem`."""

    network: Network
    rates: Mapping[str, float]

    def __post_init__(self) -> None:
        for name in self.network.inputs:
            if name not in self.rates:
                raise BadProblem(f"inputs.{name}", "needs a rate")
            check_number(f"inputs.{name}", self.rates[name])
        for name in self.rates:
            if name not in self.network.inputs:
                raise BadProblem(f"inputs.{name}", "is not an input of the network")

    @cached_property
    def model(self) -> FlowModel:
        """Return the linear equations of the network."""
        return FlowModel.of(self.network)

    @cached_property
    def vector(self) -> Floats:
        """Return the rates in the order of the inputs, float64[i]."""
        return np.array([self.rates[name] for name in self.network.inputs], np.float64)


@dataclass(frozen=True)
class SheddingOutcome:
    """What a plan gives: weighted results, and the use of each resource, of nodes first.

    `results`: records of each output; `kept`: the part of them that is kept, 1 if there are none
    without shedding either.
    """

    value: float
    loads: Mapping[str, float]
    results: Mapping[str, float]
    kept: Mapping[str, float]


@dataclass(frozen=True)
class SheddingPlan:
    """The fraction that each drop location keeps, and what that gives."""

    keep: Mapping[str, float]
    outcome: SheddingOutcome

    @classmethod
    def of(cls, problem: SheddingProblem, keep: Mapping[str, float]) -> "SheddingPlan":
        """Return the plan of these fractions; locations without one keep everything."""
        full = {name: keep.get(name, 1.0) for name in problem.network.locations}
        return cls(full, outcome_of(problem, full))

    @classmethod
    def of_flows(cls, problem: SheddingProblem, flows: Floats) -> "SheddingPlan":
        """Return the plan with these flows, float64[d], that drops as early as possible."""
        network = problem.network
        keep = problem.model.keep(flows, problem.vector).tolist()
        parts = dict(zip(network.locations, keep, strict=True))
        return cls.of(problem, trimmed(network, parts))


def outcome_of(problem: SheddingProblem, keep: Mapping[str, float]) -> SheddingOutcome:
    """Return what fractions of drop locations give, record by record through the operators."""
    reduced, full = _rates(problem, keep), _rates(problem, {})
    outputs = problem.network.outputs
    results = {name: reduced.leaving[name] for name in outputs}
    kept = {
        name: rate / full.leaving[name] if full.leaving[name] > 0 else 1.0
        for name, rate in results.items()
    }
    value = sum(weight * results[name] for name, weight in outputs.items())
    return SheddingOutcome(value, reduced.loads, results, kept)


def trimmed(network: Network, keep: Mapping[str, float]) -> dict[str, float]:
    """Return fractions of equal results that drop as early as possible; `keep`: all locations.

    What all split edges of an input or operator drop is dropped before it, unless it is an output.
    """
    parts = [keep[name] for name in network.locations]
    sites, leads = network.drop_sites
    # The needed part of what arrives at each site; the last ones are of NOTHING and ALL.
    needed = [*[0.0] * len(sites), 0.0, 1.0]
    for number, (places, behind, is_output) in enumerate(sites):
        kept = [parts[place] * needed[site] for place, site in zip(places, behind, strict=True)]
        if not is_output:
            most = needed[number] = max(kept)
            kept = [part / most if most > 0 else 1.0 for part in kept]
        for place, part in zip(places, kept, strict=True):
            parts[place] = part
    for place, site in enumerate(leads):
        parts[place] *= needed[site]
    return dict(zip(network.locations, parts, strict=True))


@dataclass(frozen=True)
class _Rates:
    leaving: Mapping[str, float]
    loads: Mapping[str, float]


def _rates(problem: SheddingProblem, keep: Mapping[str, float]) -> _Rates:
    """Return what leaves each input and operator, and the load of each resource."""
    network = problem.network
    leaving = {name: rate * keep.get(name, 1.0) for name, rate in problem.rates.items()}
    loads = dict.fromkeys(network.resources, 0.0)
    for operator in network.order:
        out = 0.0
        for source, gain in zip(operator.sources, operator.gains, strict=True):
            arriving = leaving[source] * keep.get(Edge(source, operator.name).name, 1.0)
            out += arriving * gain
            loads[operator.node] += arriving * operator.cost
            if source in network.by_name:
                link = f"{network.by_name[source].node}{ARROW}{operator.node}"
                if link in loads:
                    loads[link] += arriving
        leaving[operator.name] = out
    return _Rates(leaving, loads)
