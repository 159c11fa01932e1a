"""MQP and Figure 1: worked cases, and the theorems that bound them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings

from algorithms.errors import BadProblem
from algorithms.placement.exact import Exact
from algorithms.placement.offline import Mqp, SingleSource
from algorithms.placement.problem import PlacementProblem
from tests.algorithms.placement.instances import (
    chain,
    figure_1,
    first_sources,
    optimum,
    pairs,
    problems,
)


def test_chain_is_packed_by_size() -> None:
    """AB and one BC on the first server: theta is 4, so BC is cut at the cap."""
    plan = Mqp().solve(chain())
    assert plan.traffic == 7
    assert plan.loads.tolist() == [4, 4]


def test_rates_that_differ_are_not_weighed() -> None:
    assert Mqp().solve(pairs()).traffic == 15


def test_a_negative_theta_fills_the_server() -> None:
    """Slack 1: theta is 8 - 8 = 0 for the first of two servers, which then takes all it can."""
    plan = Mqp().solve(chain(nu=1.0))
    assert plan.loads.tolist() == [8, 0]


def test_single_source_queries_take_figure_1() -> None:
    assert Mqp().solve(figure_1()).traffic == 17
    assert SingleSource().solve(figure_1()).traffic == 17
    assert Exact().solve(figure_1()).traffic == 16


def test_figure_1_is_for_queries_of_one_source() -> None:
    with pytest.raises(BadProblem) as refusal:
        SingleSource().solve(chain())
    assert refusal.value.where == "queries[0]"


@given(problems(queries=6, servers=3))
@settings(deadline=None)
def test_theorem_2(problem: PlacementProblem) -> None:
    """At most 2 d_max (log k + 1) times the optimum, times the spread of the rates."""
    assume(problem.queries and problem.caps.sum() >= problem.queries)
    read = problem.rates[problem.readers > 0]
    assume(read.min() > 0)
    widest = int((problem.indptr[1:] - problem.indptr[:-1]).max())
    ratio = 2 * widest * (math.log(problem.servers) + 1) * read.max() / read.min()
    assert Mqp().solve(problem).traffic <= ratio * optimum(problem, problem.caps)


@given(problems(queries=7, servers=3))
@settings(deadline=None)
def test_theorem_3(problem: PlacementProblem) -> None:
    """Figure 1 costs at most twice the optimum; at equal rates at most 1 + k / m of it."""
    single = first_sources(problem)
    assume(single.queries and single.caps.sum() >= single.queries)
    best = optimum(single, single.caps)
    assert SingleSource().solve(single).traffic <= 2 * best
    flat = replace(single, rates=np.ones(len(single.rates)))
    sources = int((flat.readers > 0).sum())
    # Its proof takes types that fit on a server; a larger one fills servers by itself first.
    if flat.readers.max() <= flat.caps.max() and sources >= flat.servers:
        ratio = 1 + flat.servers / sources
        assert SingleSource().solve(flat).traffic <= ratio * optimum(flat, flat.caps)
