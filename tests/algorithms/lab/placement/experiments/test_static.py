"""Figures 3, 4 and 7 on small instances: every row there, and each one the figure of a plan."""

import itertools

import numpy as np
import pytest

from algorithms.errors import BadParameters
from algorithms.lab.experiments import experiment, summarise
from algorithms.lab.placement.experiments.setup import AllAtOnce, OneByOne
from algorithms.lab.placement.experiments.static import (
    OFFLINE,
    ONLINE,
    RATES,
    NegativeRates,
    PositiveRates,
    RandomRates,
)
from algorithms.lab.placement.planner import promised_caps
from algorithms.lab.registry import algorithm
from tests.algorithms.placement.certificate import certify

SMALL = {"queries": 600, "servers": 6, "seeds": 2}
VALUES: dict[str, list[float]] = {
    "exponent": [1.0, 3.0],
    "sources_per_query": [1, 3],
    "servers": [2, 9],
    "queries": [100, 400],
    "shape": [1.0, 3.0],
}


@pytest.mark.parametrize("name", [one.name for one in (*OFFLINE, *ONLINE, *RATES)])
def test_every_value_series_and_seed_has_its_row(name: str) -> None:
    """Replication factors lie between 1 and k, and no traffic is below its bound."""
    one = experiment("placement", name)
    values = VALUES[one.x.name]
    table = one.run(one.parameters.from_mapping(SMALL), values)
    rows = [(row[one.x.name], row["seed"], row["series"]) for row in table.records()]
    assert set(rows) == set(itertools.product(values, range(2), one.series))
    assert len(rows) == len(values) * 2 * len(one.series)
    factors, traffic, bounds = (
        np.array(table.column(measure), np.float64)
        for measure in ("replication_factor", "traffic", "lower_bound")
    )
    assert (factors >= 1).all()
    assert (factors <= 9).all()
    assert (bounds <= traffic * (1 + 1e-12)).all()


def test_a_row_is_the_figure_of_a_certified_plan() -> None:
    """Run again by hand: the same instance, algorithm, slack and seed."""
    one = experiment("placement", "fig4a")
    parameters = OneByOne(**SMALL, exponent=1.5, alpha=3.0, nu=0.2)
    row = one.run(parameters, [1.5], ["least_cost"]).records()[1]
    problem = parameters.problem(seed=1)
    chosen = algorithm("placement", "least_cost")
    settings = chosen.parameters.from_mapping({"alpha": 3.0, "nu": 0.2})
    plan = chosen.solve(problem, settings)
    certify(problem, plan, promised_caps(settings, problem))
    assert row["seed"] == 1
    assert row["replication_factor"] == plan.replication_factor
    assert row["max_load"] == plan.max_load
    assert row["imbalance"] == pytest.approx(plan.max_load / 100 - 1)
    assert row["sources"] == len(problem.rates)


def test_the_same_parameters_give_the_same_figures() -> None:
    """Also for random series, which take the workload's seed; only the time differs."""
    one = experiment("placement", "fig3a")
    runs = [one.run(AllAtOnce(**SMALL), [2.0], ["off_rand", "on_rand"]) for _ in range(2)]
    factors = [table.column("replication_factor") for table in runs]
    assert factors[0] == factors[1]
    assert len(set(factors[0])) == 4


def test_a_heavier_tail_replicates_more() -> None:
    """Section 6.2, observation 1 on figure 3(a)."""
    one = experiment("placement", "fig3a")
    table = one.run(AllAtOnce(**SMALL), [1.0, 2.0, 3.0], ["mms", "off_rand"])
    means = summarise(table, "exponent", "replication_factor")
    for series in ("mms", "off_rand"):
        factors = [row["mean"] for row in means.records() if row["series"] == series]
        assert len(factors) == 3
        assert factors == sorted(factors, key=lambda factor: -float(factor or 0))


def test_rates_change_nothing_but_rates() -> None:
    """The three cases of figure 7 share graph and draws; who has which rate differs."""
    problems = [kind(**SMALL).problem(3) for kind in (RandomRates, PositiveRates, NegativeRates)]
    plain = OneByOne(**SMALL).problem(3)
    for problem in problems:
        assert problem.indices.tolist() == plain.indices.tolist()
        assert np.sort(problem.rates).tolist() == np.sort(problems[0].rates).tolist()
    popular = int(plain.readers.argmax())
    at_random, positive, negative = (float(problem.rates[popular]) for problem in problems)
    assert positive == problems[0].rates.max()
    assert negative < 1.1
    assert negative < at_random < positive


def test_rates_can_be_multiples_of_popularity_instead() -> None:
    """The other reading of "proportional": a draw times or over the readers."""
    drawn = RandomRates(**SMALL).problem(3)
    times = PositiveRates(**SMALL, times_popularity=1).problem(3)
    over = NegativeRates(**SMALL, over_popularity=1).problem(3)
    assert times.rates.tolist() == (drawn.rates * drawn.readers).tolist()
    assert over.rates.tolist() == (drawn.rates / drawn.readers).tolist()


def test_what_cannot_be_drawn_is_refused_with_the_values() -> None:
    """More sources per query than a form allows, and the like, before anything runs."""
    one = experiment("placement", "fig3b")
    with pytest.raises(BadParameters, match="at least 1"):
        one.run(AllAtOnce(**SMALL), [0])
