import copy
import pickle
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.errors import BadProblem
from algorithms.lab.placement.arrivals import choose, place
from algorithms.lab.placement.states import state_of
from algorithms.placement.online import (
    LeastCost,
    LeastQueryTypes,
    LeastSource,
    OnlinePlacement,
    OnRand,
)
from algorithms.placement.online.state import OnlineState
from algorithms.placement.problem import PlacementProblem
from tests.algorithms.placement.certificate import certify
from tests.algorithms.placement.instances import chain, crowded, pairs, problems
from tests.algorithms.placement.online.plain import add_query, same_state

EVERY = [LeastCost(), LeastSource(), LeastQueryTypes(), OnRand(seed=3)]


def empty_state(placement: OnlinePlacement, problem: PlacementProblem) -> OnlineState:
    """Return the state of the problem's servers before the first query."""
    return OnlineState(problem.servers, problem.rates, with_kinds=placement.needs_kinds)


def test_chain_arrives_in_turn() -> None:
    """The third AB already exceeds cap 2 (n / k + 1 = 2.5), which later costs B, C and D again."""
    plan = LeastCost(nu=0.05, alpha=1.0).solve(chain())
    assert plan.assignment.tolist() == [0, 0, 1, 1, 1, 1, 0, 0]
    assert plan.traffic == 8


def test_rates_that_differ_are_weighed() -> None:
    plan = LeastCost(nu=0.05, alpha=10.0).solve(pairs())
    assert plan.assignment.tolist() == [0, 1, 0, 1, 0, 1]
    assert plan.traffic == 13
    assert plan.replication_factor == pytest.approx(1.4444, abs=5e-5)


def test_the_offline_capacity_does_not_bind_arrivals() -> None:
    """Ten queries for nine places: equation 7 has its own slack."""
    assert LeastCost().solve(crowded()).max_load == 10


def test_least_source_goes_where_the_traffic_stays_low() -> None:
    """LeastCost would join the copy of source 0; LeastSource prefers the idle server."""
    state = OnlineState(2, [3.0, 1.0])
    add_query(state, [0], 0)
    assert choose(LeastCost(), state, [0, 1]) == 0
    assert choose(LeastSource(), state, [1]) == 1


def test_least_query_types_prefers_a_server_that_has_the_type() -> None:
    placement = LeastQueryTypes()
    state = OnlineState(2, [1.0, 1.0], with_kinds=placement.needs_kinds)
    for sources, server in (([0], 0), ([1], 0), ([0, 1], 1)):
        add_query(state, sources, server)
    assert choose(placement, state, [0, 1]) == 1
    assert choose(placement, state, [0]) == 1


def test_least_query_types_needs_a_state_that_counts_them() -> None:
    with pytest.raises(ValueError, match="with_kinds"):
        choose(LeastQueryTypes(), OnlineState(2, [1.0]), [0])


def test_where_no_server_qualifies_the_least_loaded_is_taken() -> None:
    """With alpha = 0 the first query already exceeds the mean; it has to go somewhere."""
    state = OnlineState(3, [1.0])
    assert [place(LeastCost(nu=0.0, alpha=0.0), state, [0]) for _ in range(4)] == [0, 1, 2, 0]


def test_departures_make_room_and_stop_deliveries() -> None:
    placement = LeastCost(nu=0.0, alpha=1.0)
    state = state_of(placement, chain(), [0, 0, 0, 1, 1, 1, 1, 0])
    assert state.traffic.tolist() == [2, 3]
    state.remove([2, 3], 1)
    assert state.traffic.tolist() == [2, 3]
    state.remove([2, 3], 1)
    assert state.traffic.tolist() == [2, 2]
    assert state.loads.tolist() == [4, 2]


@pytest.mark.parametrize("server", [-1, 0, 2])
def test_a_query_that_is_not_there_cannot_leave(server: int) -> None:
    state = OnlineState(2, [1.0])
    place(LeastCost(), state, [0])
    with pytest.raises(BadProblem):
        state.remove([0], server if server else 1)


@pytest.mark.parametrize("sources", [[], [2], [-1]])
def test_an_arrival_on_unknown_sources_is_refused(sources: list[int]) -> None:
    state = OnlineState(2, [1.0, 1.0])
    with pytest.raises(BadProblem):
        place(LeastCost(), state, sources)
    assert state.live == 0


@pytest.mark.parametrize("assignment", [[0], [0] * 7 + [2], [0] * 7 + [-1]])
def test_an_assignment_must_name_a_server_for_each_query(assignment: list[int]) -> None:
    with pytest.raises(BadProblem):
        state_of(LeastCost(), chain(), assignment)


@pytest.mark.parametrize("placement", EVERY)
@given(problem=problems(), data=st.data())
def test_state_in_bulk_is_state_query_by_query(
    placement: OnlinePlacement, problem: PlacementProblem, data: st.DataObject
) -> None:
    """Rows read from a database and a history of arrivals must lead to the same next decision."""
    servers = st.integers(0, problem.servers - 1)
    assignment = data.draw(st.lists(servers, min_size=problem.queries, max_size=problem.queries))
    bulk = state_of(placement, problem, assignment)
    single = empty_state(placement, problem)
    for query, server in enumerate(assignment):
        add_query(single, problem.sources_of(query).tolist(), server)
    assert same_state(bulk, single)
    assert np.array_equal(bulk.traffic, single.traffic)
    assert np.array_equal(bulk.board.kind_totals, single.board.kind_totals)
    assert choose(placement, bulk, [0]) == choose(placement, single, [0])


@pytest.mark.parametrize("placement", EVERY)
@given(problem=problems())
def test_what_arrives_and_leaves_leaves_no_trace(
    placement: OnlinePlacement, problem: PlacementProblem
) -> None:
    state = empty_state(placement, problem)
    rows = [problem.sources_of(query).tolist() for query in range(problem.queries)]
    servers = [place(placement, state, row) for row in rows]
    for row, server in reversed(list(zip(rows, servers, strict=True))):
        state.remove(row, server)
    assert same_state(state, empty_state(placement, problem))
    assert not state.board.kind_totals.any()
    assert not state.traffic.any()


@pytest.mark.parametrize("placement", EVERY)
def test_state_is_a_value(placement: OnlinePlacement) -> None:
    """The same code runs in a request, in a task and in a what-if: copies do not touch."""
    state = state_of(placement, chain(), [0, 0, 0, 1, 1, 1, 1, 0])
    copied, stored = copy.deepcopy(state), pickle.loads(pickle.dumps(state))
    place(placement, copied, [0, 3])
    assert same_state(state, stored)
    assert not same_state(state, copied)
    assert state.live == 8


@given(problems(), st.sampled_from([0.0, 0.5, 1.0, 10.0]), st.sampled_from([0.0, 0.05, 1.0]))
def test_every_prefix_keeps_the_constraint(
    problem: PlacementProblem, alpha: float, nu: float
) -> None:
    """Equation 7 holds at each arrival, not only at the last."""
    placement = LeastCost(nu=nu, alpha=alpha)
    rows = [problem.sources_of(query).tolist() for query in range(problem.queries)]
    for arrived in range(1, problem.queries + 1):
        part = PlacementProblem.from_lists(problem.rates, rows[:arrived], problem.servers, nu)
        certify(part, placement.solve(part), placement.promised_caps(part))


def test_an_arrival_at_ten_thousand_queries_takes_few_calls() -> None:
    """The state is loaded in bulk for every placement."""
    draw = np.random.default_rng(1)
    rows = [draw.integers(0, 1500, 5).tolist() for _ in range(10_000)]
    problem = PlacementProblem.from_lists(np.ones(1500), rows, 100, 0.05)
    assignment = draw.integers(0, 100, 10_000).tolist()
    placement = LeastCost()
    state = state_of(placement, problem, assignment)
    started = time.process_time()
    place(placement, state, rows[0])
    assert time.process_time() - started < 0.5
