"""Each strategy on small cases, and the walk-through of section 2.5."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from algorithms.admission.packing import best_fit
from algorithms.admission.prediction import Predictions
from algorithms.admission.problem import AdmissionProblem, StreamTooLarge
from algorithms.admission.strategies import Ard, Ari, Drf, DrfM, Par, Profile, Strategy
from algorithms.lab.admission.certificate import check

STRATEGIES = (Par, Ari, Ard, Drf, DrfM, Profile)


def problem_of(
    rows: list[tuple[int, float, float, float, float | None]], nodes: int, capacity: float = 10.0
) -> AdmissionProblem:
    """A problem of streams as (node, average, next, at t + k, of which meta-data say)."""
    table = np.array([row[:4] for row in rows], np.float64)
    known = np.array([row[4] is not None for row in rows])
    forecast = table[:, 2:4]
    expected = forecast.copy()
    expected[known, 1] = [row[4] for row in rows if row[4] is not None]
    new = known & (table[:, 0] < 0)
    expected[new, 0] = expected[new, 1]
    return AdmissionProblem(
        capacity,
        np.full(nodes, capacity),
        table[:, 0].astype(np.int64),
        Predictions(table[:, 1], forecast, expected, known),
        stream_names=[f"s{number}" for number in range(1, len(rows) + 1)],
    )


VICTIMS = problem_of([(0, 3, 3.5, 5.5, None), (0, 5, 5, 5, None), (0, 4, 3.5, 2.5, 9)], 1)


@pytest.mark.parametrize(
    ("strategy", "victims"), [(Ari(), [0]), (Ard(), [1]), (Drf(), [0]), (DrfM(), [0, 2])]
)
def test_victims_of_an_overloaded_node(strategy: Strategy, victims: list[int]) -> None:
    plan = strategy.solve(VICTIMS)
    assert plan.redirected.tolist() == victims
    check(VICTIMS, plan)


def test_drf_m_takes_the_stream_with_the_highest_increase_first() -> None:
    assert np.argsort(-DrfM().victim_order(VICTIMS)).tolist() == [2, 0, 1]


def test_best_fit_decreasing_into_free_space() -> None:
    """Free 3 and 2: the 6 and the 5 open two new nodes, the 3 and the 2 fill the others."""
    sizes = np.array([[2.0], [3.0], [6.0], [5.0]])
    order = np.argsort(-sizes[:, 0], kind="stable")
    nodes, opened = best_fit(order, sizes, np.array([[3.0], [2.0]]), 10.0)
    assert dict(zip(order.tolist(), nodes.tolist(), strict=True)) == {2: 2, 3: 3, 1: 0, 0: 1}
    assert opened == 2


# Figure 5 is not legible in the stored paper: rates for which every step of the text holds.
# Average, forecast of t + 1, forecast of t + k, meta-data; N1 to N3, and three new streams.
FIGURE_5: list[tuple[int, float, float, float, float | None]] = [
    (0, 3, 3.5, 4.5, None),
    (0, 5, 5, 5, None),
    (0, 4, 3.5, 2.5, 6),
    (1, 2, 3, 3, None),
    (1, 3, 4, 4, None),
    (2, 7, 8, 8, None),
    (-1, 4, 4, 4, 4),
    (-1, 4, 4, 4, 3),
    (-1, 4, 4, 4, 2),
]


def test_the_walk_through_of_section_2_5() -> None:
    problem = problem_of(FIGURE_5, 3)
    assert problem.loads(problem.predictions.average).tolist() == [12, 5, 7]
    assert problem.predictions.average[:6].mean() == 4, "the default rate of new streams"
    plan = DrfM().solve(problem)
    assert plan.redirected.tolist() == [2], "s3 is the victim"
    assert plan.nodes == 4, "a new split node is added"
    assert plan.assignment[[2, 6]].tolist() == [3, 3], "s3 and s7 are on it"
    assert plan.assignment[[7, 8]].tolist() == [1, 2], "s8 is on N2, s9 on N3"
    check(problem, plan)


@pytest.mark.parametrize("strategy", [Ari(), Ard(), Drf()])
def test_without_meta_data_another_stream_is_chosen(strategy: Strategy) -> None:
    assert strategy.solve(problem_of(FIGURE_5, 3)).redirected.tolist() != [2]


def test_opposite_streams_share_a_node() -> None:
    """Each pair needs 11 at its highest rates, and 6 in every period."""
    forecast = np.array([[5.0, 1.0], [1.0, 5.0], [5.0, 1.0], [1.0, 5.0]])
    predictions = Predictions(forecast[:, 0], forecast, forecast, np.zeros(4, np.bool_))
    problem = AdmissionProblem(6.0, np.zeros(0), np.full(4, -1), predictions)
    plan = Profile().solve(problem)
    assert plan.nodes == 2
    loads = np.zeros((2, 2))
    np.add.at(loads, plan.assignment, forecast)
    assert loads.tolist() == [[6.0, 6.0], [6.0, 6.0]]


def test_a_stream_prefers_the_node_with_an_opposite_cycle() -> None:
    """Both nodes have the same free capacity now, but only one of them in the second part."""
    now = np.array([[4.0], [4.0], [4.0]])
    cycle = np.array([[4.0, 8.0], [4.0, 2.0], [4.0, 7.0]])
    predictions = Predictions(now[:, 0], now, now, np.ones(3, np.bool_), cycle)
    owner = np.array([0, 1, -1])
    problem = AdmissionProblem(10.0, np.full(2, 10.0), owner, predictions)
    assert Profile().solve(problem).assignment.tolist() == [0, 1, 1]


def test_the_victim_costs_least_for_what_it_relieves() -> None:
    """Either stream suffices; the client of the one whose rate rises later buffers less."""
    expected = np.array([[6.0, 6.0], [2.0, 6.0]])
    predictions = Predictions(expected[:, 0], expected, expected, np.ones(2, np.bool_))
    problem = AdmissionProblem(10.0, np.full(1, 10.0), np.zeros(2, np.int64), predictions)
    assert Profile(foresee=True).solve(problem).redirected.tolist() == [1]


def test_no_node_closes_while_the_total_rate_falls_steeply() -> None:
    expected = np.array([[6.0, 1.0], [2.0, 1.0]])
    predictions = Predictions(expected[:, 0], expected, expected, np.ones(2, np.bool_))
    problem = AdmissionProblem(10.0, np.full(2, 10.0), np.array([0, 1]), predictions)
    strategy = Profile(consolidate=True)
    assert strategy.solve(problem).closed == ()
    even = Predictions(expected[:, 0], expected[:, :1], expected[:, :1], np.ones(2, np.bool_))
    assert strategy.solve(replace(problem, predictions=even)).closed == (1,)


def test_a_foreseen_overload_is_above_the_filled_share() -> None:
    problem = problem_of([(0, 5, 5, 5, None), (0, 4.5, 4.5, 4.5, None)], 1)
    assert DrfM(foresee=True).solve(problem).redirected.tolist() == []
    assert len(DrfM(foresee=True, fill=0.9).solve(problem).redirected) == 1


def drawn(seed: int, streams: int = 60, nodes: int = 6) -> AdmissionProblem:
    rng = np.random.default_rng(seed)
    average = rng.uniform(0.5, 3, streams)
    forecast = average[:, None] * rng.uniform(0.5, 1.5, (streams, 3))
    expected = forecast * rng.uniform(0.9, 1.1, (streams, 3))
    owner = rng.integers(-1, nodes, streams)
    predictions = Predictions(average, forecast, expected, rng.random(streams) < 0.5)
    return AdmissionProblem(10.0, np.full(nodes, 10.0), owner, predictions)


@pytest.mark.parametrize("kind", STRATEGIES)
@pytest.mark.parametrize("seed", range(5))
def test_every_stream_has_a_node_within_its_capacity(kind: Any, seed: int) -> None:
    """Nodes that took streams or gave some away are within capacity as the strategy counts."""
    problem = drawn(seed)
    strategy = kind()
    plan = strategy.solve(problem)
    check(problem, plan)
    sizes = strategy.limited_sizes(problem)
    loads = np.zeros((plan.nodes, sizes.shape[1]))
    np.add.at(loads, plan.assignment, sizes)
    touched = set(plan.assignment[plan.redirected].tolist())
    touched |= set(plan.assignment[problem.owner == -1].tolist())
    assert (loads[sorted(touched)] <= 10 + 1e-6).all()


def test_consolidation_closes_a_nearly_empty_node() -> None:
    problem = problem_of([(0, 4, 4, 4, None), (1, 1, 1, 1, None), (2, 2, 2, 2, None)], 3)
    plan = DrfM(consolidate=True).solve(problem)
    assert plan.assignment.tolist() == [0, 0, 0]
    assert plan.closed == (1, 2)
    assert DrfM().solve(problem).closed == ()


def test_a_stream_that_no_node_can_read_is_named() -> None:
    with pytest.raises(StreamTooLarge) as caught:
        problem_of([(0, 3, 3, 3, None), (0, 11, 11, 11, None)], 1)
    assert (caught.value.stream, caught.value.rate, caught.value.capacity) == ("s2", 11, 10)
