import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.placement.offline import IncrementalCost, Mms, OffRand, rounds
from algorithms.placement.offline.rules import single_source_assignment
from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import silent
from tests.algorithms.placement.instances import chain, figure_1, optimum, pairs, problems

Key = tuple[float, float, int, int, int, int]


@pytest.mark.parametrize("rule", [Mms(), IncrementalCost()])
def test_chain_is_placed_at_its_optimum(rule: Mms | IncrementalCost) -> None:
    """AB and A fill one server, BC and CD the other: only B is delivered twice."""
    plan = rule.solve(chain())
    assert (plan.traffic, plan.lower_bound, plan.max_load) == (5, 5, 4)
    assert optimum(chain(), chain().caps) == 5


@pytest.mark.parametrize("rule", [Mms(), IncrementalCost()])
def test_rates_that_differ_are_weighed(rule: Mms | IncrementalCost) -> None:
    plan = rule.solve(pairs())
    assert plan.traffic == 15
    assert plan.replication_factor == pytest.approx(15 / 9)


@pytest.mark.parametrize("rule", [Mms(), IncrementalCost()])
def test_single_source_queries_take_figure_1(rule: Mms | IncrementalCost) -> None:
    """Only the source of rate 1 is split, over all three servers: 8 + 4 + 2 + 3."""
    assert rule.solve(figure_1()).traffic == 17


@given(problems())
def test_single_source_queries_cost_at_most_twice_their_rates(problem: PlacementProblem) -> None:
    """Theorem 3: the extra traffic of splitting is at most the whole rate w(S).

    Its proof reduces to types that fit on a server; a larger one fills servers by itself first.
    """
    firsts = [[int(problem.sources_of(query)[0])] for query in range(problem.queries)]
    single = PlacementProblem.from_lists(problem.rates, firsts, problem.servers, problem.nu)
    if single.caps.sum() < single.queries or not single.queries:
        return
    if single.readers.max() > single.caps.max():
        return
    servers = single_source_assignment(single).tolist()
    delivered = {(server, row[0]) for server, row in zip(servers, firsts, strict=True)}
    assert sum(single.rates[source] for _, source in delivered) <= 2 * single.live_rate


@given(st.booleans().flatmap(lambda unequal: problems(unequal=unequal)), st.booleans())
def test_rounds_follow_the_rule_to_the_letter(problem: PlacementProblem, by_traffic: bool) -> None:
    """The heaps must choose what trying every type on every server would choose.

    On unequal servers by traffic and load for each unit of capacity.
    """
    if problem.caps.sum() < problem.queries:
        return
    found = rounds.greedy_assignment(problem, by_traffic=by_traffic, progress=silent)
    assert found.tolist() == _by_trying_everything(problem, by_traffic)


def test_progress_rises_to_one() -> None:
    heard: list[float] = []
    Mms().solve(chain(), heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 1


def test_progress_can_stop_a_run() -> None:
    """Cancelling is raising: nothing is planned then."""

    def cancel(_: float) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        Mms().solve(chain(), cancel)


def test_traffic_follows_the_capacities_where_the_slack_would_allow_more() -> None:
    """Twice the share would be 8 queries of 40 on the node of capacity 10."""
    queries = [[query, (query + 1) % 40] for query in range(40)]
    problem = PlacementProblem.from_lists([1.0] * 40, queries, 2, 1.0, [10.0, 90.0])
    assert Mms().solve(problem).loads.tolist() == pytest.approx([4, 36], abs=1)


def test_random_baseline_depends_on_its_seed() -> None:
    plans = {tuple(OffRand(seed).solve(chain()).assignment.tolist()) for seed in range(8)}
    assert len(plans) > 1


def _by_trying_everything(problem: PlacementProblem, by_traffic: bool) -> list[int]:
    types = problem.types
    sets = [
        {int(s) for s in types.indices[types.indptr[t] : types.indptr[t + 1]]}
        for t in range(len(types))
    ]
    waiting = types.sizes.tolist()
    queues = [
        [q for q in range(problem.queries) if types.of_query[q] == t] for t in range(len(types))
    ]
    received: list[set[int]] = [set() for _ in range(problem.servers)]
    loads = [0] * problem.servers
    assignment = [-1] * problem.queries

    def key(kind: int, server: int) -> Key:
        added = sum(problem.rates[s] for s in sets[kind] - received[server])
        traffic = sum(problem.rates[s] for s in received[server])
        size = problem.capacities[server]
        metric = (traffic + added) / size if by_traffic else added
        return (metric, added, -waiting[kind], (loads[server] + 1) / size, server, kind)

    while any(waiting):
        best = min(
            key(kind, server)
            for kind in range(len(types))
            for server in range(problem.servers)
            if waiting[kind] and loads[server] < problem.caps[server]
        )
        kind, server = best[-1], best[-2]
        for _ in range(min(waiting[kind], int(problem.caps[server]) - loads[server])):
            assignment[queues[kind].pop(0)] = server
            waiting[kind] -= 1
            loads[server] += 1
        received[server] |= sets[kind]
    return assignment
