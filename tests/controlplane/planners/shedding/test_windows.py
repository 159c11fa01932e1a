"""Which edges of a ladder drop whole windows, and why others do not."""

from dataclasses import replace

import numpy as np
import pytest

from controlplane.planners.shedding.inputs import SheddingInput
from controlplane.planners.shedding.ladder import compute_ladder
from controlplane.planners.shedding.problem import network_of
from controlplane.planners.shedding.windows import (
    EXCESS,
    RandomReason,
    WindowChoice,
    choose_windows,
    reaction_s,
    windows_per_group,
)
from controlplane.plans.ladder_settings import SheddingSettings
from controlplane.wire.routing.compiled_ladder import compiled_ladder
from controlplane.wire.routing.drop_rules import INPUT, DropRule
from controlplane.wire.routing.ladder import WindowDrop
from tests.support.shedding import SheddingCluster
from workers.pipeline.engine.evaluation.drop_rules import is_dropped, is_window_dropped
from workers.pipeline.shedding.window_steps import WINDOW_SEED, share_of_windows


def choice_of(cluster: SheddingCluster) -> WindowChoice:
    """Return the choice for the ladder of a cluster, which has the same windows."""
    snapshot = cluster.snapshot()
    ladder = compute_ladder(snapshot)
    assert ladder is not None
    work = snapshot.input(SheddingInput)
    assert work is not None
    choice = choose_windows(network_of(snapshot), work, ladder)
    assert list(ladder.windows) == choice.windows
    assert ladder.edges == {(w.stream, w.query) for w in choice.windows} | choice.reasons.keys()
    return choice


@pytest.mark.parametrize("slides", [1, 2, 12])
def test_few_more_windows_than_records_are_dropped(slides: int) -> None:
    """By the rules that nodes apply, on many records."""
    slide_ms = 1_000
    query = SheddingCluster({}, []).add(1, [1], [0], window_ms=slides * slide_ms, slide_ms=slide_ms)
    window = WindowDrop(1, INPUT, slides * slide_ms, slide_ms, windows_per_group(query.queries[0]))
    times = np.arange(0, 100_000_000, 1_009)
    for share in (0.1, 0.5, 0.9):
        windows = share_of_windows(window, share)
        assert share <= windows <= share + EXCESS
        rule = replace(DropRule.of(windows, WINDOW_SEED), window_ms=window.window_ms,
                       slide_ms=slide_ms, batch=window.batch)  # fmt: skip
        records = is_dropped(rule, np.zeros(len(times), np.uint64), times).mean()
        assert records == pytest.approx(share, abs=0.03)
        starts = np.arange(100_000) * slide_ms
        assert is_window_dropped(rule, starts).mean() == pytest.approx(windows, abs=0.03)


def test_windows_are_dropped_if_their_backlog_stays_within_the_latency() -> None:
    """A stream with all of a node, and one with a tenth of it, by windows of several lengths."""

    def chosen(window_ms: int, slide_ms: int, latency_s: float) -> list[int]:
        cluster = SheddingCluster({1: 90.0, 2: 10.0}, [0.01])
        cluster.settings = SheddingSettings(latency_s=latency_s)
        for stream in (1, 2):
            # Records of both have the same value, so that both lose some on a fair ladder.
            cluster.add(stream, [stream], [0], window_ms=window_ms, slide_ms=slide_ms)
        cluster.settings = replace(cluster.settings, objective="fair")
        return [window.stream for window in choice_of(cluster).windows]

    assert chosen(10_000, 10_000, 10.0) == [1, 2]
    assert chosen(20_000, 20_000, 10.0) == [2], "stream 1 would wait for 9 s"
    assert chosen(20_000, 20_000, 20.0) == [1, 2]
    assert chosen(60_000, 60_000, 60.0) == [1, 2]
    assert chosen(61_000, 61_000, 600.0) == [], "longer than overloads last"
    assert chosen(4_000, 2_000, 10.0) == [1, 2], "sliding: groups of 3 windows"
    assert chosen(12_000, 1_000, 10.0) == [2]


def test_queries_with_the_same_windows_drop_them_together() -> None:
    cluster = SheddingCluster({1: 40.0, 2: 40.0}, [0.01])
    # Two computations of stream 1, whose windows are the same.
    cluster.add(1, [1], [0], window_ms=5_000).add(2, [1], [0], window_ms=5_000)
    # A computation that two queries of stream 2 share beside a better query with other windows.
    cluster.add(3, [2], [0], window_ms=6_000, weight=0.1)
    cluster.add(4, [2], [0], window_ms=6_000, weight=0.1, shared=3)
    cluster.add(5, [2], [0], window_ms=90_000, weight=9.0)
    ladder = compute_ladder(cluster.snapshot())
    assert ladder is not None
    edges = {(window.stream, window.query): window[2:] for window in ladder.windows}
    assert edges[1, INPUT] == (5_000, 5_000, 1)
    assert edges[2, 3] == edges[2, 4] == (6_000, 6_000, 1)
    classes = compiled_ladder(ladder).query_edges
    assert classes[2, 3] == classes[2, 4], "one class: nodes still compute them once"


def test_what_drops_records_has_a_reason() -> None:
    long, short = 600_000, 5_000
    cluster = SheddingCluster({1: 100.0}, [0.01])
    assert choice_of(cluster.add(1, [1], [0], window_ms=long)).reasons == {
        (1, INPUT): RandomReason.REACTION
    }
    union = SheddingCluster({1: 100.0, 2: 50.0}, [0.01]).add(1, [1, 2], [0], window_ms=short)
    assert set(choice_of(union).reasons.values()) == {RandomReason.STREAMS}
    readers = SheddingCluster({1: 100.0}, [0.01], split_seconds=0.02)
    readers.add(1, [1], [0], window_ms=short).add(2, [1], [0], window_ms=long)
    assert set(choice_of(readers).reasons.values()) == {RandomReason.READERS}
    emulated = SheddingCluster({1: 100.0}, [0.01], frozenset({0}))
    emulated.add(1, [1], [0], window_ms=short).add(2, [1], [0], window_ms=7_000)
    assert not choice_of(emulated).windows
    cluster.settings = SheddingSettings(windows="random")
    assert choice_of(cluster).reasons == {(1, INPUT): RandomReason.POLICY}


def test_the_reaction_time_has_the_group_and_the_windows_before_it() -> None:
    assert reaction_s(WindowDrop(1, INPUT, 10_000, 10_000)) == 10.0
    assert reaction_s(WindowDrop(1, INPUT, 12_000, 1_000, 28)) == 39.0
