"""A plan under a budget: within it, measured as any plan is, and told with its bound."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from controlplane.errors import Invalid
from controlplane.planning.budget import checked_budget, fit_to_budget
from controlplane.planning.execution_plan import StepLimits
from controlplane.planning.measures import measures
from controlplane.planning.resolution import resolve
from controlplane.plans.plan import PlannedAction, TaskMove, task_moves
from controlplane.wire.routing.cluster_actions import AssignStream, SetNodeActive
from tests.controlplane.planning.drawn import drawn, gathered

LIMITS = StepLimits(10, 40, 1000.0)
STEP_S = 2.0


def source_of(planned: PlannedAction) -> int:
    assert isinstance(planned, TaskMove)
    return planned.source


def pause_ms(moves: Any) -> float:
    return sum(1000 * (STEP_S + float(move.bytes) / 1000) for move in moves)


@pytest.mark.parametrize(
    "budget",
    [{"bytes": 900}, {"moves": 3}, {"pause_ms": 8000}, {"share": 0.3}, {"bytes": 1500, "moves": 5}],
)
@pytest.mark.parametrize("seed", range(4))
def test_it_is_kept_and_what_is_told_is_true(seed: int, budget: dict[str, float]) -> None:
    """Counted again from the moves; the bounds hold for the measures of what was chosen."""
    snapshot = drawn(seed)
    moves = gathered(snapshot)
    found = fit_to_budget(snapshot, moves, budget, LIMITS, STEP_S)
    spent = sum(move.bytes for move in found.plan)
    assert spent <= budget.get("bytes", spent)
    assert len(found.plan) <= budget.get("moves", len(moves))
    assert pause_ms(found.plan) <= budget.get("pause_ms", pause_ms(moves)) + 1e-6
    assert spent <= budget.get("share", 1.0) * sum(move.bytes for move in moves)
    assert found.summary["used"]["bytes"] == spent
    assert found.summary["used"]["pause_ms"] == pytest.approx(pause_ms(found.plan), abs=0.1)
    assert found.summary["left_out"] == len(moves) - len(found.plan)
    assert found.summary["limits"] == budget
    after = measures(snapshot, found.plan)
    assert found.summary["replication_bound"] <= after["replication_factor"] + 1e-6
    assert found.summary["imbalance_bound"] <= max(
        after["imbalance"], measures(snapshot, moves)["imbalance"]
    ) + 1e-6  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_no_three_moves_are_better(seed: int) -> None:
    """All of them are tried: as balanced as the whole plan first, then the least replication."""
    snapshot = drawn(seed, queries=12)
    moves = gathered(snapshot)
    whole = measures(snapshot, moves)["imbalance"]

    def value(chosen: Any) -> tuple[int, float]:
        found = measures(snapshot, chosen)
        return max(0, int((found["imbalance"] - whole) / 0.01 + 1e-9)), found["replication_factor"]

    found = value(fit_to_budget(snapshot, moves, {"moves": 3}, LIMITS, STEP_S).plan)
    best = min(value(chosen) for size in range(4) for chosen in combinations(moves, size))
    assert found[0] == best[0]
    assert found[1] <= best[1] * 1.001


def test_where_more_may_be_spent_nothing_gets_worse() -> None:
    """Balance first; only the whole plan, which is not chosen among, may be beaten by a part."""
    snapshot = drawn(9, queries=60, streams=20)
    moves = gathered(snapshot)
    whole = measures(snapshot, moves)["imbalance"]
    values = []
    for share in (0.0, 0.1, 0.25, 0.5, 0.75):
        plan = fit_to_budget(snapshot, moves, {"share": share}, LIMITS, STEP_S).plan
        found = measures(snapshot, plan)
        excess = max(0, int((found["imbalance"] - whole) / 0.01 + 1e-9))
        values.append((excess, found["replication_factor"] / 1.001))
    assert values == sorted(values, reverse=True)
    assert fit_to_budget(snapshot, moves, {"share": 0.0}, LIMITS, STEP_S).plan == []
    assert fit_to_budget(snapshot, moves, {"share": 1.0}, LIMITS, STEP_S).plan == moves


def test_a_lost_node_is_emptied_first() -> None:
    """Whatever the moves off it do for the balance."""
    snapshot = drawn(2)
    snapshot.nodes[2] = replace(snapshot.nodes[2], active=False)
    moves = gathered(snapshot)
    off = [move for move in moves if source_of(move) == 2]
    assert off
    found = fit_to_budget(snapshot, moves, {"moves": len(off)}, LIMITS, STEP_S)
    assert found.plan == off


def test_actions_of_other_kinds_stay_in_the_plan() -> None:
    """They cost nothing of what a budget limits; a plan of them alone is whole."""
    snapshot = drawn(3)
    others = resolve(snapshot, [AssignStream(1, 0), SetNodeActive(1, active=False)])
    plan = [others[0], *gathered(snapshot), others[1]]
    found = fit_to_budget(snapshot, plan, {"moves": 2}, LIMITS, STEP_S)
    assert found.plan[0] == others[0]
    assert found.plan[-1] == others[1]
    assert len(found.plan) == 4
    assert fit_to_budget(snapshot, others, {"moves": 2}, LIMITS, STEP_S).plan == others


def test_without_known_state_a_share_is_one_of_the_moves() -> None:
    snapshot = drawn(1)
    moves = [move._replace(bytes=0) for move in task_moves(gathered(snapshot))]
    found = fit_to_budget(snapshot, moves, {"share": 0.5}, LIMITS, STEP_S)
    assert 0 < len(found.plan) <= len(moves) / 2


@pytest.mark.parametrize(
    "given", [3, {"byte": 1}, {"bytes": -1}, {"moves": "3"}, {"share": 2}, {"bytes": float("nan")}]
)
def test_nonsense_is_refused(given: Any) -> None:
    with pytest.raises(Invalid) as refused:
        checked_budget(given)
    assert list(refused.value.fields) == ["budget"]


def test_what_is_not_limited_is_not_kept() -> None:
    assert checked_budget(None) == checked_budget({}) == checked_budget({"moves": None}) == {}
    assert checked_budget({"moves": 3, "bytes": None}) == {"moves": 3}
