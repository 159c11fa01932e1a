"""What a move is worth is what the plan's measures are without it."""

import time

import pytest

from controlplane.planning.effects import effects
from controlplane.planning.measures import measures
from controlplane.planning.resolution import resolve
from controlplane.wire.routing.cluster_actions import AssignStream, SetCapacity
from tests.controlplane.planning.drawn import drawn, gathered


@pytest.mark.parametrize("seed", range(5))
def test_each_is_the_difference_of_measures_from_scratch(seed: int) -> None:
    snapshot = drawn(seed)
    moves = gathered(snapshot)
    whole = measures(snapshot, moves)
    found = effects(snapshot, moves)
    assert [one.place for one in found] == list(range(len(moves)))
    for one in found:
        without = measures(snapshot, [*moves[: one.place], *moves[one.place + 1 :]])
        shares = [
            rate / node.capacity
            for rate, node in zip(without["rates"], snapshot.nodes, strict=True)
        ]
        assert one.imbalance == pytest.approx(without["imbalance"] - whole["imbalance"], abs=1e-6)
        factor = without["replication_factor"] - whole["replication_factor"]
        assert one.replication_factor == pytest.approx(factor, abs=1e-6)
        assert one.bytes == -moves[one.place].bytes
        assert one.worst_share == pytest.approx(max(shares))
        assert shares[one.worst] == pytest.approx(max(shares))


def test_an_action_of_another_kind_is_the_difference_as_well() -> None:
    snapshot = drawn(4)
    others = resolve(snapshot, [SetCapacity(0, 20.0, emulated=False), AssignStream(1, 0)])
    plan = [others[0], *gathered(snapshot), others[1]]
    first, *_, last = effects(snapshot, plan)
    whole, without = measures(snapshot, plan), measures(snapshot, plan[1:])
    assert first.imbalance == pytest.approx(without["imbalance"] - whole["imbalance"], abs=1e-6)
    assert (last.imbalance, last.replication_factor, last.bytes) == (0, 0, 0)


def test_some_places_are_as_among_all() -> None:
    snapshot = drawn(7)
    moves = gathered(snapshot)
    assert effects(snapshot, moves, [2, 0]) == [effects(snapshot, moves)[at] for at in (2, 0)]


def test_a_thousand_moves_take_well_under_a_second() -> None:
    """Among five thousand queries; 0.1 s on an idle core."""
    snapshot = drawn(3, nodes=16, streams=500, queries=5000)
    moves = gathered(snapshot)[:1000]
    begun = time.process_time()
    assert len(effects(snapshot, moves)) == 1000
    assert time.process_time() - begun < 0.8
