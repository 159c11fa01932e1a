"""Ladders of drop rules for tests: drawn ones, and ladders of one stream."""

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from controlplane.wire.routing.drop_rules import INPUT
from controlplane.wire.routing.ladder import Cost, KeptPart, Ladder, ResourceKind, Rung, WindowDrop

STREAMS = 3
QUERIES = 4
MINUTE = 60_000

_PARTS = st.floats(0, 1)
_EDGES = st.tuples(st.integers(1, STREAMS), st.integers(INPUT, QUERIES))
_COSTS = st.builds(
    lambda edge, kind, number, seconds: Cost(edge[0], edge[1], kind, number, seconds),
    _EDGES, st.sampled_from(ResourceKind), st.integers(0, 2), st.floats(1e-4, 1e-1),
)  # fmt: skip


@st.composite
def ladders(draw: DrawFn) -> Ladder:
    """Draw a ladder of a few rungs whose parts fall from rung to rung, some by windows."""
    edges = draw(st.lists(_EDGES, min_size=1, max_size=6, unique=True))
    factors = sorted(draw(st.sets(st.integers(2, 40), min_size=1, max_size=5)))
    parts = dict.fromkeys(edges, 1.0)
    rungs = []
    for factor in factors:
        parts = {edge: part * draw(_PARTS) for edge, part in parts.items()}
        kept = tuple(KeptPart(*edge, part) for edge, part in parts.items())
        rungs.append(Rung(factor / 2, kept))
    windowed = draw(st.lists(st.sampled_from(edges), unique=True, max_size=2))
    return Ladder(
        tuple(rungs),
        tuple(draw(st.lists(_COSTS, min_size=1, max_size=8))),
        tuple(WindowDrop(*edge, MINUTE, MINUTE) for edge in windowed),
        limit=draw(st.floats(0.1, 1)),
        hold_ms=draw(st.integers(0, 60_000)),
        drain_ms=draw(st.integers(1, 60_000)),
    )


def input_ladder(
    stream: int, seconds: float, kind: ResourceKind = ResourceKind.NODE, number: int = 0,
    parts: tuple[float, ...] = (0.5, 0.25, 0.0), hold_ms: int = 30_000, drain_ms: int = 5_000,
) -> Ladder:  # fmt: skip
    """Return a ladder that drops on the input edge of a stream for one resource."""
    rungs = tuple(
        Rung(1 / part if part else 1000.0, (KeptPart(stream, INPUT, part),)) for part in parts
    )
    cost = Cost(stream, INPUT, kind, number, seconds)
    return Ladder(rungs, (cost,), hold_ms=hold_ms, drain_ms=drain_ms)
