"""Plans from a running placement keep the promise of their goal, by counts that share no code."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from algorithms.placement.improve import (
    Goal,
    Improve,
    ImproveProblem,
    Measured,
    MeasureLimits,
    MoveBudget,
)
from tests.support.nightly import NIGHTLY

CLUSTERS = 300 if NIGHTLY else 12
SAME = 1e-6


def drawn(seed: int) -> ImproveProblem:
    """Draw a cluster: unlike rates, units that read parts, exclusions and a lost node."""
    draw = np.random.default_rng(seed)
    nodes, streams = int(draw.integers(2, 9)), int(draw.integers(3, 40))
    rows = [
        sorted(draw.choice(streams, int(draw.integers(0, 4)), replace=False).tolist())
        for _ in range(int(draw.integers(1, 80)))
    ]
    rates = draw.lognormal(1.0, 1.0, streams)
    present = draw.integers(0, nodes, len(rows))
    active = draw.random(nodes) < 0.9
    active[int(draw.integers(nodes))] = True
    open_nodes = draw.random(nodes) < 0.9
    open_nodes[int(np.argmax(active))] = True
    # The parts of a stream are disjoint.
    is_part = draw.random(len(rows)) < 0.3
    shares = np.where(is_part, draw.dirichlet(np.ones(len(rows))), 1.0)
    return ImproveProblem.from_arrays(
        rates,
        np.cumsum([0, *map(len, rows)]),
        [stream for row in rows for stream in row],
        present,
        rates.sum() * draw.uniform(0.2, 2.0, nodes),
        MeasureLimits(*draw.uniform([1.0, 0.02, 0.1], [3.0, 0.5, 1.2])),
        parts=np.repeat(shares, [len(row) for row in rows]),
        costs=draw.uniform(0.5, 2.0, len(rows)),
        movable=draw.random(len(rows)) < 0.9,
        active=active,
        open_nodes=open_nodes,
    )


def counted(problem: ImproveProblem, hosts: Any) -> Measured:
    """Return the measures by sets and sums."""
    received = [dict[int, list[float]]() for _ in range(problem.nodes)]
    for unit, node in enumerate(hosts.tolist()):
        for slot in range(*problem.indptr[unit : unit + 2]):
            stream, part = int(problem.indices[slot]), float(problem.parts[slot])
            received[node].setdefault(stream, []).append(part)
    live = math.fsum(problem.rates[stream] for stream in set().union(*received))
    traffic = [
        math.fsum(
            problem.rates[stream] * (1.0 if 1.0 in parts else math.fsum(parts))
            for stream, parts in row.items()
        )
        for row in received
    ]
    shares = [sent / size for sent, size in zip(traffic, problem.capacities.tolist(), strict=True)]
    factor = math.fsum(traffic) / live if live else 0.0
    return Measured(factor, max(shares) - math.fsum(shares) / len(shares), max(shares))


@pytest.mark.nightly("solvers", by_day=True)
@pytest.mark.parametrize("goal", list(Goal))
def test_no_plan_worsens_what_it_is_for(goal: Goal) -> None:
    """Nor raises any measure above its limit, or further above; unmovable units stay."""
    for seed in range(CLUSTERS):
        problem = drawn(seed)
        plan = Improve(goal=goal.value).solve(problem)
        begin, after = plan.start, counted(problem, plan.assignment)
        assert np.allclose(after, plan.measured), seed
        for value, was, limit in zip(after, begin, problem.limits, strict=True):
            assert value <= max(was, limit) + SAME, seed
        own = {Goal.TRAFFIC: "replication", Goal.EVEN: "imbalance"}.get(goal)
        if own is not None:
            assert getattr(after, own) <= getattr(begin, own) + SAME, seed
        exceeded = problem.limits.exceedances(after)
        assert exceeded <= [over + SAME for over in problem.limits.exceedances(begin)], seed
        moved = plan.assignment != problem.present
        assert not moved[~problem.movable].any()
        assert problem.open[plan.assignment[moved]].all()
        assert problem.active[plan.assignment[problem.movable]].all()
        if not problem.leaving.any():
            assert np.allclose(begin, counted(problem, problem.present)), seed


@pytest.mark.nightly("solvers", by_day=True)
def test_a_plan_stays_within_its_budget_and_keeps_its_gain() -> None:
    """The plan within fewer moves is no worse than none, and exceeds its budget for no gain."""
    for seed in range(CLUSTERS):
        whole = drawn(seed)
        plan = Improve().solve(whole)
        moves = int((plan.assignment != whole.present).sum())
        must = int(whole.leaving.sum())
        most = must + (moves - must) // 2
        problem = replace(whole, budget=MoveBudget(moves=most))
        within = Improve().solve(problem)
        spent = int((within.assignment != whole.present).sum())
        exceeded, before, after = (
            whole.limits.exceedances(measured)
            for measured in (within.measured, within.start, plan.measured)
        )
        assert exceeded <= [over + SAME for over in before], seed
        assert after <= [over + SAME for over in exceeded], seed
        assert spent <= max(moves, must), seed
        if spent > most:
            assert within.measured != within.start, (
                "a plan beyond its budget has a gain to cut from"
            )


def split(limits: MeasureLimits, goal: Goal = Goal.REPAIR) -> Any:
    """Return a plan for four queries on two nodes that both receive both streams."""
    problem = ImproveProblem.from_arrays(
        [10.0, 1.0], [0, 1, 2, 3, 4], [0, 0, 1, 1], [0, 1, 0, 1], [20.0, 20.0], limits
    )
    return Improve(goal=goal.value).solve(problem)


def test_what_exceeds_a_limit_is_repaired_by_the_fewest_moves() -> None:
    """One move takes a stream from a node; a second one would take the other stream, too."""
    plan = split(MeasureLimits(1.2, 1.0, 1.0), Goal.FEW_MOVES)
    assert plan.start.replication == 2.0
    assert plan.measured.replication == pytest.approx(12 / 11)
    assert (plan.assignment != [0, 1, 0, 1]).sum() == 1


def test_nothing_moves_where_every_limit_is_kept() -> None:
    assert split(MeasureLimits(3.0, 1.0, 1.0), Goal.FEW_MOVES).assignment.tolist() == [0, 1, 0, 1]


def test_a_budget_is_part_of_the_search() -> None:
    """One move gathers the readers of one of two streams: those of the larger one."""
    problem = ImproveProblem.from_arrays(
        [10.0, 1.0], [0, 1, 2, 3, 4], [0, 0, 1, 1], [0, 1, 0, 1], [20.0, 20.0],
        MeasureLimits(1.0, 1.0, 1.0),
    )  # fmt: skip
    plan = Improve().solve(replace(problem, budget=MoveBudget(moves=1)))
    assert (plan.assignment != problem.present).sum() == 1
    assert plan.measured.replication == pytest.approx(12 / 11), "the larger stream goes to one node"


def test_traffic_falls_as_far_as_the_other_limits_allow() -> None:
    """All on one node would be the least traffic; the imbalance forbids it."""
    assert split(MeasureLimits(3.0, 1.0, 1.0), Goal.TRAFFIC).measured.replication == 1.0
    assert split(MeasureLimits(3.0, 0.1, 1.0), Goal.TRAFFIC).measured.replication > 1.0


def test_the_curve_shows_what_fewer_moves_reach() -> None:
    plan = split(MeasureLimits(1.05, 1.0, 1.0))
    moves = [point.moves for point in plan.curve]
    assert moves == sorted(moves)
    factors = [point.measured.replication for point in plan.curve]
    assert factors == sorted(factors, reverse=True)
    assert plan.measured in [point.measured for point in plan.curve]


def test_a_search_without_time_still_keeps_its_promise() -> None:
    """Progress is told in any case, and rises to the whole."""
    for seconds in (0.0, 60.0):
        shares: list[float] = []
        problem = drawn(7)
        plan = Improve(seconds=seconds).solve(problem, shares.append)
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
        exceeded = problem.limits.exceedances(plan.measured)
        assert exceeded <= [over + SAME for over in problem.limits.exceedances(plan.start)]


def test_the_same_seed_gives_the_same_plan() -> None:
    first, second = (Improve(seed=3).solve(drawn(5)) for _ in range(2))
    assert first.assignment.tolist() == second.assignment.tolist()
