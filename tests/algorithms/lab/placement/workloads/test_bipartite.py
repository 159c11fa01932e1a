"""The laws that the random bipartite graphs of section 6.1 keep."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from algorithms.errors import BadParameters
from algorithms.lab.placement.workloads.bipartite import bipartite, part_repeated, zipf_degrees
from algorithms.vocabulary import Ints


def likeliest_exponent(degrees: Ints, largest: int) -> float:
    """Maximum likelihood of the exponent of a Zipf law over 1..largest, computed plainly."""
    logs = np.log(np.arange(1.0, largest + 1))

    def unlikely(exponent: float) -> float:
        return float(exponent * np.log(degrees).mean() + np.log(np.exp(-exponent * logs).sum()))

    return float(minimize_scalar(unlikely, bounds=(0.1, 6), method="bounded").x)


@given(
    queries=st.integers(1, 60),
    width=st.integers(1, 6),
    exponent=st.floats(0, 4),
    largest=st.sampled_from([None, 1, 2, 5, 100]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=150, deadline=None)
def test_every_query_reads_distinct_sources_and_every_source_is_read(
    queries: int, width: int, exponent: float, largest: int | None, seed: int
) -> None:
    """Few queries and heavy tails draw sources that nearly all queries read: the hard case."""
    graph = bipartite(queries, width, exponent, seed, largest)
    rows = np.sort(graph.indices.reshape(queries, width), axis=1)
    assert (rows[:, 1:] > rows[:, :-1]).all()
    assert graph.indptr.tolist() == [query * width for query in range(queries + 1)]
    assert len(graph.readers) == graph.sources
    assert graph.readers.min() >= 1
    assert graph.readers.max() <= min(largest or queries, queries)


@given(edges=st.integers(1, 500), largest=st.integers(1, 50), seed=st.integers(0, 2**32))
@settings(deadline=None)
def test_degrees_fill_the_edges_exactly(edges: int, largest: int, seed: int) -> None:
    """Only the last degree is cut, and never to nothing."""
    degrees = zipf_degrees(edges, 1.5, largest, np.random.default_rng(seed))
    assert degrees.sum() == edges
    assert degrees.min() >= 1
    assert degrees.max() <= largest


def test_parting_repeated_sources_keeps_every_degree() -> None:
    """All queries read source 0 and one other; the ends of 0 lie in pairs at first."""
    rows = np.array([[0, 0], [1, 2], [0, 0], [3, 4]] * 50, np.int32)
    before = np.bincount(rows.ravel())
    part_repeated(rows, np.random.default_rng(0))
    assert (rows[:, 0] != rows[:, 1]).all()
    assert np.bincount(rows.ravel()).tolist() == before.tolist()
    assert (rows == 0).any(axis=1).all()


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0, 3.0])
def test_the_exponent_can_be_recovered(exponent: float) -> None:
    """200,000 edges: the likeliest exponent of the degrees lies within some standard errors."""
    readers = bipartite(100_000, 2, exponent, seed=7).readers
    assert likeliest_exponent(readers, 1_000) == pytest.approx(exponent, abs=0.04)


def test_without_a_largest_degree_the_tail_reaches_further() -> None:
    """The bound is what decides how popular the most popular source is."""
    bounded, free = bipartite(50_000, 2, 1.5, 3, 100), bipartite(50_000, 2, 1.5, 3, None)
    assert bounded.readers.max() <= 100
    assert free.readers.max() > 1_000
    assert bipartite(50_000, 2, 1.5, 3, 0).readers.tolist() == free.readers.tolist()


def test_readers_are_mixed() -> None:
    """The first half of the queries reads a popular source about as often as the second."""
    graph = bipartite(20_000, 2, 1.2, seed=1)
    popular = int(graph.readers.argmax())
    early = (graph.indices[:20_000] == popular).sum() / graph.readers[popular]
    assert early == pytest.approx(0.5, abs=0.08)


def test_the_same_seed_draws_the_same_graph() -> None:
    """Reproducible figures; another seed, another graph."""
    one, same, other = (bipartite(1_000, 3, 1.5, seed) for seed in (5, 5, 6))
    assert one.indices.tolist() == same.indices.tolist()
    assert one.indices.tolist() != other.indices.tolist()


def test_counts_below_one_are_refused() -> None:
    """All faults in one error, by name."""
    with pytest.raises(BadParameters) as caught:
        bipartite(0, 0, 2.0, 1, -1)
    assert set(caught.value.fields) == {"queries", "sources_per_query", "largest_degree"}
