"""What holds for every grouping."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem
from algorithms.lab.partitioning.certificate import Counts, certify
from algorithms.lab.partitioning.problem import ListedStream, PartitioningProblem, solve
from algorithms.partitioning.catalog import GROUPINGS
from algorithms.partitioning.grouping import Feedback, Grouping, Messages, Workers
from tests.algorithms.partitioning.streams import (
    chosen,
    describe,
    messages,
    variants,
    workers,
    zipf,
)

EVERY = pytest.mark.parametrize("grouping", list(variants()), ids=describe)
QUICK = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
WRONG: tuple[Any, ...] = ({}, None, ["x"], [[1]], "?")
UNEQUAL = (1.0, 2.0, 4.0, 1.0, 2.5, 0.5, 3.0)


def unpacked(grouping: Grouping[Any], of: Workers, state: Any) -> Any:
    """Return a state after its way through JSON."""
    return grouping.unpack(of, json.loads(json.dumps(grouping.pack(state))))


@EVERY
@QUICK
@given(of=workers(), parts=st.lists(messages(), min_size=1, max_size=3), packs=st.booleans())
def test_plain_code_decides_as_route(
    grouping: Grouping[Any], of: Workers, parts: list[Messages], packs: bool
) -> None:
    """Over several calls, with the state packed in between."""
    routed_state = chosen_state = grouping.start(of)
    for part in parts:
        routed, routed_state = grouping.route(routed_state, part)
        plain, chosen_state = chosen(grouping, chosen_state, part)
        assert routed.tolist() == plain.tolist()
        assert grouping.pack(routed_state) == grouping.pack(chosen_state)
        if packs:
            routed_state = unpacked(grouping, of, routed_state)
            chosen_state = unpacked(grouping, of, chosen_state)


@EVERY
@pytest.mark.parametrize("capacities", [None, UNEQUAL], ids=["equal", "unequal"])
def test_plain_code_decides_as_route_with_hot_keys(
    grouping: Grouping[Any], capacities: tuple[float, ...] | None
) -> None:
    """Long enough for several periods of frequency counting and many panes."""
    of = Workers.of(7, capacities)
    stream = Messages(zipf(1.3, 300, 2_600), np.arange(2_600) // 3)
    state = grouping.start(of)
    first, middle = grouping.route(state, stream.part(0, 1_100))
    second, _ = grouping.route(unpacked(grouping, of, middle), stream.part(1_100, 2_600))
    plain, middle = chosen(grouping, state, stream.part(0, 1_100))
    further, _ = chosen(grouping, unpacked(grouping, of, middle), stream.part(1_100, 2_600))
    assert first.tolist() == plain.tolist()
    assert second.tolist() == further.tolist()


@EVERY
def test_parts_are_routed_as_the_whole(grouping: Grouping[Any]) -> None:
    of = Workers.of(5)
    stream = Messages(zipf(1.0, 500, 4_000), np.arange(4_000) // 7)
    whole, _ = grouping.route(grouping.start(of), stream)
    state, parts = grouping.start(of), []
    for start, stop in ((0, 1), (1, 1_000), (1_000, 1_000), (1_000, 3_999), (3_999, 4_000)):
        part, state = grouping.route(state, stream.part(start, stop))
        parts += part.tolist()
    assert whole.tolist() == parts


@EVERY
def test_a_state_is_a_value(grouping: Grouping[Any]) -> None:
    stream = Messages(zipf(1.2, 50, 3_000))
    start = grouping.start(Workers.of(4))
    _, state = grouping.route(start, stream)
    packed = json.dumps(grouping.pack(state))
    first, _ = grouping.route(state, stream)
    again, _ = grouping.route(state, stream)
    assert first.tolist() == again.tolist()
    assert json.dumps(grouping.pack(state)) == packed
    assert json.dumps(grouping.pack(start)) == json.dumps(
        grouping.pack(grouping.start(Workers.of(4)))
    )


@EVERY
@QUICK
@given(of=workers(), stream=messages())
def test_certificate(grouping: Grouping[Any], of: Workers, stream: Messages) -> None:
    plan = solve(grouping, PartitioningProblem(ListedStream(stream), of))
    claimed = Counts(plan.loads.tolist(), plan.memory, plan.imbalance)
    assert plan.assignment is not None
    certify(stream.keys.tolist(), plan.assignment.tolist(), claimed, of.shares.tolist())


@EVERY
def test_sources_are_combined(grouping: Grouping[Any]) -> None:
    """Three sources route from one state; loads and counts of all of them are added up."""
    of = Workers.of(6, [1, 1, 2, 2, 3, 3])
    state = grouping.start(of)
    keys, times = zipf(1.2, 200, 60_000), np.arange(60_000) // 20
    for batch in range(10):
        after = []
        for source in range(3):
            places = slice(6_000 * batch + source, 6_000 * (batch + 1), 3)
            part = Messages(keys[places], times[places])
            assigned, other = grouping.route(state, part)
            assert assigned.min() >= 0
            assert assigned.max() < 6
            after.append(other)
        state = unpacked(grouping, of, grouping.combined(state, after, Feedback(1_000 * batch)))
    size = len(json.dumps(grouping.pack(state)))
    assert size <= 8_000, "it travels in the offset of every micro-batch"
    loads = getattr(state, "loads", state)
    if hasattr(loads, "routed"):
        assert loads.routed == 60_000
    if hasattr(loads, "load"):
        # Rate-aware panes forget load far above that of other workers.
        assert loads.load.sum() == 60_000 or grouping.name == "rate_aware"


@EVERY
def test_the_same_sources_in_any_process(grouping: Grouping[Any]) -> None:
    """A replay of a batch combines to the same state."""
    of, stream = Workers.of(3), Messages(zipf(1.5, 40, 5_000), np.arange(5_000))
    before = grouping.start(of)
    packed = []
    for _ in range(2):
        after = [grouping.route(before, stream.part(s, s + 2_500))[1] for s in (0, 2_500)]
        feedback = Feedback(5, np.array([0.5, 0.9, 0.1]), np.array([3, 0, 0]))
        packed.append(grouping.pack(grouping.combined(before, after, feedback)))
    assert packed[0] == packed[1]


@pytest.mark.parametrize("name", ["shuffle", "partial_key", "two_choices", "random_choices",
                                  "bounded_load", "head_aware", "rate_aware"])  # fmt: skip
def test_loads_follow_capacities(name: str) -> None:
    grouping = GROUPINGS[name].parameters()
    of = Workers.of(7, UNEQUAL)
    stream = Messages(zipf(0.3, 50_000, 60_000), np.arange(60_000) * 10)
    assigned, _ = grouping.route(grouping.start(of), stream)
    shares = np.bincount(assigned, minlength=7) / 60_000
    assert (shares / of.shares).max() < 1.05
    assert (shares / of.shares).min() > 0.85
    plain = GROUPINGS[name].parameters(weighted=False)
    assigned, _ = plain.route(plain.start(of), stream)
    assert np.abs(np.bincount(assigned, minlength=7) * 7 / 60_000 - 1).max() < 0.1


@pytest.mark.parametrize("name", ["partial_key", "two_choices", "random_choices", "bounded_load",
                                  "head_aware", "rate_aware"])  # fmt: skip
def test_reported_backlogs_count_as_load(name: str) -> None:
    grouping = GROUPINGS[name].parameters()
    of, stream = Workers.of(4), Messages(zipf(0.0, 10_000, 8_000), np.arange(8_000) * 50)
    before = grouping.start(of)
    state = grouping.combined(before, [before], Feedback(0, None, np.array([2_000, 0, 0, 0])))
    assigned, _ = grouping.route(state, stream)
    loads = np.bincount(assigned, minlength=4)
    assert loads[0] < 800
    assert loads[1:].min() > 2_100


@pytest.mark.parametrize("name", ["partial_key", "random_choices", "head_aware", "rate_aware"])
def test_old_load_fades(name: str) -> None:
    """After weeks a small part of the mean load is still few messages."""
    grouping = GROUPINGS[name].parameters()
    state = grouping.start(Workers.of(2))
    stream = Messages(zipf(0.5, 100, 60_000))
    for _ in range(3):
        state = grouping.combined(state, [grouping.route(state, stream)[1]], None)
    loads = getattr(state, "loads", state)
    assert loads.load.sum() <= 2 * (1 << 14)
    assert loads.routed == 180_000


@pytest.mark.parametrize(
    "grouping", [item for item in variants() if item.name != "consistent_grouping"], ids=describe
)
def test_packed_states_that_do_not_fit_are_refused(grouping: Grouping[Any]) -> None:
    row = grouping.pack(grouping.route(grouping.start(Workers.of(3)), Messages(zipf(1, 9, 50)))[1])
    for name in row:
        for wrong in WRONG:
            with pytest.raises(BadProblem):
                grouping.unpack(Workers.of(3), row | {name: wrong})
        with pytest.raises(BadProblem):
            grouping.unpack(Workers.of(3), {other: row[other] for other in row if other != name})
