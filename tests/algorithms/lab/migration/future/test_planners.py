"""Looking ahead: better over a history than single steps, exact where that can be had."""

import json

import numpy as np
import pytest

from algorithms.errors import BadProblem, InfeasibleTau, TooLarge
from algorithms.lab.migration.future.exact import project
from algorithms.lab.migration.future.interval_values import best_cuts, value_at
from algorithms.lab.migration.future.learning import Effort, even_cuts, learn_values
from algorithms.lab.migration.future.partitionings import partitionings
from algorithms.lab.migration.future.planners import ForeseenProblem, Mtm, Sequence, SequenceProblem
from algorithms.lab.migration.future.projection import BINS, Landscape, Projection
from algorithms.lab.migration.future.rollout import play_policy
from algorithms.lab.migration.future.transitions import Transitions, futures
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.single_step import SingleStep
from algorithms.random_numbers import new_state
from tests.algorithms.lab.migration.future.test_exact import matched
from tests.algorithms.migration.certificate import certify

UP_AND_DOWN = [4, 5, 6, 7, 8, 7, 6, 5] * 20 + [4]


def foreseen(nodes: int = 3, tau: float = 0.4) -> ForeseenProblem:
    problem = MigrationProblem.of([1] * 20, [1] * 20, [0, 13], nodes, tau)
    return ForeseenProblem(problem, Transitions.from_history([2, 3, 4, 3, 2, 3, 2]))


def test_values_are_weighed_exactly_against_bytes() -> None:
    """The pass over positions finds what trying every partitioning finds."""
    draw = np.random.default_rng(0)
    for _ in range(150):
        tasks, parts = int(draw.integers(2, 10)), int(draw.integers(1, 5))
        work = np.concatenate([[0], np.cumsum(draw.random(tasks))])
        kept = np.concatenate([[0], np.cumsum(draw.random(tasks))])
        inner = np.sort(draw.integers(0, tasks + 1, int(draw.integers(0, 4))))
        present = np.concatenate([[0], inner, [tasks]]).astype(np.int64)
        limit = max(1.6 * work[-1] / parts, float(np.diff(work).max()))
        values, scale = draw.normal(0, 0.5, 12), 10 / limit

        def total(cuts: np.ndarray) -> float:
            moved = kept[-1] - matched(kept, present, cuts)  # noqa: B023 - used at once
            loads = np.diff(work[cuts])  # noqa: B023 - used at once
            return float(moved + sum(value_at(values, load, scale) for load in loads))  # noqa: B023

        ways = partitionings(work, limit, parts, 100_000)
        if len(ways):
            found = best_cuts(work, kept, present, limit, parts, values, scale)
            assert total(found) == pytest.approx(min(total(way) for way in ways))


def test_one_migration_is_planned_and_certified() -> None:
    for method in ("exact", "learned"):
        problem = foreseen().problem
        plan = Mtm(method=method, rounds=2).solve(foreseen())
        certify(problem, plan)
        assert plan.feasible
        assert plan.cost >= SingleStep().solve(problem).cost


def test_gamma_zero_is_the_single_step() -> None:
    for method in ("exact", "learned"):
        plan = Mtm(method=method, gamma=0.0, rounds=1).solve(foreseen())
        assert plan.cost == SingleStep().solve(foreseen().problem).cost


def test_learned_values_come_close_to_exact_ones() -> None:
    """Where both can be had: following learned values costs within a few percent of the best."""
    transitions = Transitions.from_history([2, 3, 4, 3, 2, 3, 2] * 3)
    landscape = Landscape(np.ones(20), np.ones(20), 0.8, 0.8, transitions)
    exact = project(landscape)
    projection = learn_values(landscape, Effort(rounds=4, jobs=4, steps=120))
    future = futures(transitions.totals, 1, 1, 2_000, new_state(9))[0]
    single, taught = (
        play_policy(landscape.ground, even_cuts(landscape, 1), future, values)[1].sum()
        for values in (np.zeros((3, BINS)), projection.values)
    )
    cuts, best = even_cuts(landscape, 1), 0.0
    for row in future:
        cuts, cost, _ = exact.best(landscape.ground.kept, cuts, int(row))
        best += cost
    assert best <= taught <= 1.1 * best
    assert taught < single


def test_looking_ahead_moves_less_over_a_history() -> None:
    transitions = Transitions.from_history(UP_AND_DOWN)
    landscape = Landscape(np.ones(32), np.ones(32), 0.8, 0.8, transitions)
    assert learn_values(landscape, Effort(rounds=3, jobs=3, steps=100)).gain > 0.1


def test_a_projection_is_kept_and_used_again() -> None:
    mtm = Mtm(method="learned", rounds=1)
    projection = mtm.projection(foreseen())
    assert isinstance(projection, Projection)
    again = Projection.read(json.dumps(projection.to_json()))
    cuts = mtm.choose_cuts(foreseen(), projection).tolist()
    assert mtm.choose_cuts(foreseen(), again).tolist() == cuts
    with pytest.raises(BadProblem, match="other tasks"):
        mtm.choose_cuts(foreseen(tau=0.5), again)


@pytest.mark.parametrize("text", ['{"key": "k"}', '{"key": "k", "values": [[1]], "gain": 0}'])
def test_what_is_no_projection_is_refused(text: str) -> None:
    with pytest.raises(BadProblem, match="projection"):
        Projection.read(text)


def test_learning_reports_and_can_be_cancelled() -> None:
    heard: list[float] = []
    Mtm(method="learned", rounds=2).solve(foreseen(), heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 1

    def cancel(_: float) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        Mtm(method="learned", rounds=2).solve(foreseen(), cancel)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(BadProblem, match="do not occur"):
        Mtm().solve(foreseen(nodes=9, tau=3.0))
    with pytest.raises(InfeasibleTau):
        Mtm().solve(foreseen(tau=0.0))
    large = MigrationProblem.of([1] * 64, [1] * 64, [0], 8, 1.2)
    with pytest.raises(TooLarge):
        Mtm(method="exact").solve(ForeseenProblem(large, Transitions.from_history([8, 9, 8])))
    unequal = MigrationProblem.of([1] * 8, [1] * 8, [0, 4], 2, 1.0, [1, 2])
    with pytest.raises(BadProblem, match="capacities"):
        Mtm().solve(ForeseenProblem(unequal, Transitions.from_history([2, 3, 2])))


def test_nodes_keep_their_numbers_over_a_sequence() -> None:
    """Table 3's example: a third and a fourth node come; whoever has tasks keeps its number."""
    problem = MigrationProblem.of([1] * 20, [1] * 20, [0, 13], 3, 0.4)
    plans = Sequence().solve(SequenceProblem(problem, (3, 4)))
    assert [plan.cost for plan in plans] == [4, 2]
    assert [plan.nodes for plan in plans] == [(0, 1, 2), (0, 1, 2, 3)]
