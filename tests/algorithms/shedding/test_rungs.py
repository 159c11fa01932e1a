from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem, NotProven
from algorithms.shedding.lp import FlowProgram
from algorithms.shedding.network import Network, Operator
from algorithms.shedding.problem import SheddingProblem, outcome_of
from algorithms.shedding.rungs import LadderEnd, RungLadder, RungPlan, first_full_factor, plan_rungs
from algorithms.vocabulary import Floats
from tests.algorithms.shedding.networks import (
    chain_network,
    crossed,
    fan_out,
    figure_7,
    problem,
    problems,
)


def approx(expected: object) -> object:
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


def flows_of(base: SheddingProblem, factor: float, kept: Mapping[str, float]) -> Floats:
    """Return the flows of kept parts, which are parts of the flows without drops."""
    parts = np.array([kept[name] for name in base.network.locations])
    return parts * base.model.unshed(factor * base.vector)


def crowded_out() -> SheddingProblem:
    """Return chains i1 on A; i2 on A, then B; i3 on B: i3 drives i2 out, and A has room for i1."""
    operators = (
        Operator("q1", "A", 1.0, 1.0, ("i1",)),
        Operator("a2", "A", 1.0, 1.0, ("i2",)),
        Operator("q2", "B", 0.5, 1.0, ("a2",)),
        Operator("q3", "B", 0.5, 1.0, ("i3",)),
    )
    weights = {"q1": 1.0, "q2": 3.0, "q3": 3.0}
    network = Network({"A": 1.0, "B": 1.0}, ("i1", "i2", "i3"), operators, weights)
    return problem(network, 1, 1, 1)


def test_rungs_stand_where_the_value_bends() -> None:
    ladder = plan_rungs(problem(crossed(64, 32), 5, 20), 4.0, loss=0.0)
    # V = min(25 f, 125 / 8 + 5 f / 2, 125 / 6).
    assert [rung.factor for rung in ladder.rungs] == approx([1000 / 1440, 25 / 12, 4.0])
    values = [rung.outcome.value for rung in ladder.rungs]
    assert values == approx([25 * 1000 / 1440, 125 / 6, 125 / 6])
    assert ladder.rungs[0].kept == {"i1": 1.0, "i2": 1.0}
    assert ladder.rungs[1].kept == approx({"i1": 1.0, "i2": 0.25})
    assert ladder.end is LadderEnd.MAX_FACTOR
    assert ladder.loss < 1e-10


def test_figure_7_drops_the_lower_branch_first() -> None:
    ladder = plan_rungs(problem(figure_7(), 1.0), 2.0)
    assert [rung.factor for rung in ladder.rungs] == approx([1 / 8, 1 / 3, 2.0])
    assert [rung.kept["common->lower"] for rung in ladder.rungs] == approx([1.0, 0.0, 0.0])
    assert [rung.kept["common->upper"] for rung in ladder.rungs] == approx([1.0, 1.0, 1 / 6])
    # Of rate 0.2, 2 / 5 of the lower branch is kept.
    assert ladder.kept(0.2) == approx({"i1": 1.0, "common->upper": 1.0, "common->lower": 0.4})


def test_below_and_beyond_the_rungs_plans_are_feasible() -> None:
    base = problem(figure_7(), 1.0)
    ladder = plan_rungs(base, 2.0)
    assert ladder.kept(0.01) == {"i1": 1.0, "common->upper": 1.0, "common->lower": 1.0}
    flows = flows_of(base, 7.0, ladder.kept(7.0))
    assert base.model.loads @ flows == approx([1.0])
    assert base.model.values @ flows == approx(1 / 3)


def test_an_optimum_may_keep_more_at_more_input() -> None:
    ladder = plan_rungs(crowded_out(), 4.0, loss=0.0)
    assert [rung.factor for rung in ladder.rungs] == approx([0.5, 1.0, 2.0, 4.0])
    assert [rung.kept["i1"] for rung in ladder.rungs] == approx([1.0, 0.0, 0.5, 0.25])
    assert [rung.kept["i2"] for rung in ladder.rungs] == approx([1.0, 1.0, 0.0, 0.0])
    assert [rung.outcome.value for rung in ladder.rungs] == approx([3.5, 6.0, 7.0, 7.0])


def test_equal_streams_do_not_change_places_between_rungs() -> None:
    """Stream 3, which is better, bends V; which of the equal streams 1 and 2 is kept is free."""
    base = problem(chain_network([[2.0, 0.0], [2.0, 0.0], [1.0, 1.0], [0.1, 0.4]]), 1, 1, 1, 2)
    ladder = plan_rungs(base, 10.0, loss=0.0)
    assert len(ladder.rungs) > 3
    for low, high in zip(ladder.rungs, ladder.rungs[1:], strict=False):
        for name, part in high.kept.items():
            assert part <= low.kept[name] + 1e-9


def test_without_overload_there_are_no_rungs() -> None:
    ladder = plan_rungs(problem(figure_7(), 0.01), 10.0)
    assert ladder == RungLadder((), LadderEnd.NO_OVERLOAD, 0.0)
    assert ladder.kept(3.0) == {}
    free = chain_network([[0.0]])
    assert plan_rungs(problem(free, 5.0), 1e6).end is LadderEnd.NO_OVERLOAD
    assert plan_rungs(problem(figure_7(), 0.0), 10.0).end is LadderEnd.NO_OVERLOAD


def test_a_ladder_ends_where_floors_become_infeasible() -> None:
    chains = chain_network([[1.0], [1.0]])
    floors = {"n1_q1": 0.5, "n1_q2": 0.25}
    network = Network(chains.nodes, chains.inputs, chains.operators, chains.outputs, {}, floors)
    base = problem(network, 1, 1)
    ladder = plan_rungs(base, 10.0)
    assert ladder.end is LadderEnd.FLOORS
    # 0.5 f + 0.25 f = 1.
    assert ladder.rungs[-1].factor == pytest.approx(4 / 3, rel=1e-6)
    assert ladder.rungs[-1].kept == pytest.approx({"i1": 0.5, "i2": 0.25}, rel=1e-6)
    program = FlowProgram(base.model)
    with pytest.raises(NotProven):
        program.solve(1.34 * base.vector)
    assert plan_rungs(base, 1.2).end is LadderEnd.MAX_FACTOR


def test_floors_of_everything_leave_one_rung() -> None:
    chains = chain_network([[1.0], [1.0]])
    everything = dict.fromkeys(chains.outputs, 1.0)
    network = Network(chains.nodes, chains.inputs, chains.operators, chains.outputs, {}, everything)
    ladder = plan_rungs(problem(network, 1, 1), 10.0)
    assert [rung.factor for rung in ladder.rungs] == [0.5]
    assert ladder.end is LadderEnd.FLOORS


def test_rungs_are_left_out_if_that_loses_little() -> None:
    costs = [1.0 + number / 50 for number in range(200)]
    base = problem(fan_out(costs), 1.0)
    every = plan_rungs(base, 2.0, most=64, loss=0.0)
    assert len(every.rungs) == 64
    few = plan_rungs(base, 2.0)
    assert len(few.rungs) <= 12
    assert 0 < every.loss < few.loss
    half = plan_rungs(base, 2.0, loss=0.5)
    assert len(half.rungs) < len(few.rungs)
    assert few.loss < half.loss <= 0.5
    program = FlowProgram(base.model)
    lost = []
    for factor in np.linspace(few.rungs[0].factor, 2.0, 2000):
        best = program.solve(factor * base.vector).value
        lost.append(1 - float(base.model.values @ flows_of(base, factor, few.kept(factor))) / best)
    # The grid misses the bend with the largest loss, but not by much.
    assert few.loss * 0.9 <= max(lost) <= few.loss + 1e-9


@settings(deadline=None)
@given(problems(links=True, floors=True), st.floats(1.0, 50.0), st.data())
def test_interpolated_plans_are_feasible_and_optimal(
    base: SheddingProblem, most: float, data: st.DataObject
) -> None:
    ladder = plan_rungs(base, most, most=64, loss=0.0)
    if not ladder.rungs:
        assert ladder.end is LadderEnd.NO_OVERLOAD
        assert first_full_factor(base.model, base.vector) >= most
        return
    model, program = base.model, FlowProgram(base.model)
    first, last = ladder.rungs[0].factor, ladder.rungs[-1].factor
    for share in data.draw(st.lists(st.floats(0, 1), min_size=3, max_size=3)):
        factor = first + share * (last - first)
        rates = factor * base.vector
        flows = flows_of(base, factor, ladder.kept(factor))
        scale = max(1.0, float(np.max(model.unshed(rates))))
        assert (model.loads @ flows <= model.capacities * (1 + 1e-8) + 1e-9).all()
        arriving = np.concatenate([rates, model.arrivals @ flows])
        assert (flows <= arriving + 1e-8 * scale).all()
        least = model.floors * (model.results @ model.unshed(rates))
        assert (model.results @ flows >= least - 1e-7 * scale).all()
        best = program.solve(rates).value
        assert float(model.values @ flows) == pytest.approx(best, rel=1e-8, abs=1e-8)


@settings(deadline=None)
@given(problems(links=True), st.floats(1.0, 50.0))
def test_rungs_are_what_they_claim(base: SheddingProblem, most: float) -> None:
    """Outcomes are recomputed from the fraction of what arrives that each location keeps."""
    for rung in plan_rungs(base, most).rungs:
        rates = rung.factor * base.vector
        flows = flows_of(base, rung.factor, rung.kept)
        keep = dict(
            zip(base.network.locations, base.model.keep(flows, rates).tolist(), strict=True)
        )
        scaled = problem(base.network, *rates.tolist())
        outcome = outcome_of(scaled, keep)
        assert outcome.value == pytest.approx(rung.outcome.value, rel=1e-7, abs=1e-7)
        assert outcome.loads == pytest.approx(rung.outcome.loads, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"max_factor": 0.0}, "max_factor"),
        ({"max_factor": float("nan")}, "max_factor"),
        ({"max_factor": 1e13}, "max_factor"),
        ({"max_factor": 1e12}, "inputs.i1"),
        ({"max_factor": 2.0, "loss": -0.1}, "loss"),
        ({"max_factor": 2.0, "most": 1}, "most"),
        ({"max_factor": 2.0, "most": 65}, "most"),
    ],
)
def test_bad_arguments(arguments: dict[str, float], where: str) -> None:
    with pytest.raises(BadProblem) as raised:
        plan_rungs(problem(figure_7(), 2.0), **arguments)  # type: ignore[arg-type]
    assert raised.value.where == where


def test_a_rung_names_every_location() -> None:
    rung = plan_rungs(problem(figure_7(), 1.0), 2.0).rungs[1]
    assert isinstance(rung, RungPlan)
    assert tuple(rung.kept) == figure_7().locations
    assert rung.outcome.kept == approx({"upper": 1.0, "lower": 0.0})
