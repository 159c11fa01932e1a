"""Synthetic placement instances at the defaults of section 6.1, with unit rates."""

from algorithms.lab.placement.workloads import bipartite
from algorithms.placement.problem import PlacementProblem
from benchmarks.planners.popularity import popularity_zipf


def bipartite_instance(
    *,
    queries: int = 100_000,
    sources_per_query: int = 2,
    servers: int = 100,
    exponent: float = 2.0,
    nu: float = 0.05,
    seed: int = 0,
) -> PlacementProblem:
    """Return the paper's instance: degrees of sources are Zipf, sources as many as that takes."""
    return bipartite(queries, sources_per_query, exponent, seed).problem(servers, nu)


def zipf_instance(
    *,
    queries: int = 100_000,
    sources: int = 10_000,
    sources_per_query: int = 2,
    servers: int = 100,
    exponent: float = 2.0,
    nu: float = 0.05,
    seed: int = 0,
) -> PlacementProblem:
    """Return an instance over a fixed set of sources, drawn by rank."""
    drawn = popularity_zipf(queries, sources, sources_per_query, exponent, seed)
    return drawn.problem(servers, nu)
