"""Replays of groupings: certificates from the assignment, seeds, drawn keys, bad input."""

from typing import Any

import numpy as np
import pytest

from algorithms.errors import BadProblem, UnknownGrouping
from algorithms.lab.partitioning.certificate import count
from algorithms.lab.partitioning.workloads import zipf_shares
from algorithms.partitioning.replay import (
    ADAPTING,
    BATCHES,
    Replay,
    ReplayProblem,
    SampledKeys,
    key_hashes,
    replay,
)

MESSAGES = 6_000
TEXTS = ["", '{"grouping":"partial_key"}', '{"eps":0.05,"grouping":"random_choices"}',
         '{"grouping":"shuffle"}', '{"grouping":"consistent_grouping"}']  # fmt: skip


def zipf(distinct: int = 500, z: float = 1.0, others: int = 0) -> SampledKeys:
    """Return Zipf keys; the rarest `others` are not listed."""
    known = distinct - others
    return SampledKeys(key_hashes(distinct)[:known], zipf_shares(z, distinct)[:known], others)


def problem(keys: SampledKeys | None = None, **changed: Any) -> ReplayProblem:
    """Return 4 workers of which one is twice as fast, at half of their capacity."""
    given: dict[str, Any] = {"records_per_s": 2_500.0, "interval_s": 1.0, "merge_s": 1e-4}
    capacities = np.array([1_000.0, 1_000.0, 1_000.0, 2_000.0])
    return ReplayProblem(keys or zipf(), capacities, **given | changed)


def drawn(keys: SampledKeys, messages: int, seed: int) -> list[int]:
    """Return the measured messages of a replay."""
    size = messages // (BATCHES - ADAPTING)
    keys_of_messages: list[int] = keys.draw(size * BATCHES, seed)[size * ADAPTING :].tolist()
    return keys_of_messages


@pytest.mark.parametrize("text", TEXTS)
def test_every_number_follows_from_the_assignment(text: str) -> None:
    stream = problem()
    result = replay(text, stream, MESSAGES, seed=3)
    keys, workers = drawn(stream.keys, MESSAGES, 3), result.assignment.tolist()
    true = count(keys, workers, 4, stream.capacities.tolist())
    assert result.loads.tolist() == pytest.approx([load / MESSAGES for load in true.loads])
    # A worker with the average capacity has one fourth of the messages at the mean load.
    mean = MESSAGES / 4
    assert result.imbalance == pytest.approx(true.imbalance / mean * 2_500 / 5_000)
    assert result.memory == true.memory
    assert (result.keys, result.messages) == (len(set(keys)), MESSAGES)
    assert result.merge_load == pytest.approx(result.partials_per_s * 1e-4)
    assert 1 <= result.batch_pairs_per_key <= result.pairs_per_key <= 4


def test_equal_seeds_give_equal_replays() -> None:
    first, again, other = (replay(TEXTS[2], problem(), MESSAGES, seed) for seed in (1, 1, 2))
    assert first.assignment.tolist() == again.assignment.tolist()
    assert first.assignment.tolist() != other.assignment.tolist()


def test_key_grouping_has_one_pair_per_key_and_shuffle_the_best_balance() -> None:
    results: dict[str, Replay] = {text: replay(text, problem(), MESSAGES) for text in TEXTS}
    assert results[""].pairs_per_key == 1
    assert results[""].partials_per_s == results[""].batch_keys
    assert results[TEXTS[3]].imbalance < 0.002
    assert results[""].imbalance > results[TEXTS[1]].imbalance > results[TEXTS[3]].imbalance


def test_keys_that_are_not_listed_are_drawn_too() -> None:
    listed, rest = zipf(500), zipf(500, others=400)
    assert (listed.distinct, rest.distinct) == (500, 500)
    keys = rest.draw(50_000, 0)
    known = np.isin(keys, rest.hashes)
    assert known.mean() == pytest.approx(rest.shares.sum(), abs=0.01)
    assert 350 < len(np.unique(keys[~known])) <= 400
    assert np.isin(listed.draw(1_000, 0), listed.hashes).all()
    pairs = [replay("", problem(keys), 30_000).memory for keys in (listed, rest)]
    assert pairs[1] == pytest.approx(pairs[0], rel=0.1)


def test_counts_are_shares() -> None:
    keys = SampledKeys.of_counts([5, 9], [3, 1])
    assert keys.shares.tolist() == [0.75, 0.25]


def test_more_records_per_batch_have_more_partial_results_but_fewer_per_record() -> None:
    slow, fast = (replay(TEXTS[3], problem(records_per_s=rate), MESSAGES) for rate in (100, 4_000))
    assert slow.partials_per_s < fast.partials_per_s < 40 * slow.partials_per_s
    assert replay("", problem(records_per_s=0.0), MESSAGES).partials_per_s == 0
    halves = replay(TEXTS[3], problem(aggregators=2), MESSAGES)
    assert halves.merge_load == pytest.approx(halves.partials_per_s * 1e-4 / 2)
    assert replay("", problem(merge_s=None), MESSAGES).merge_load is None


@pytest.mark.parametrize(
    ("build", "where"),
    [
        (lambda: SampledKeys(key_hashes(2), np.ones(1)), "keys"),
        (lambda: SampledKeys(key_hashes(0), np.zeros(0)), "keys"),
        (lambda: SampledKeys(key_hashes(1), np.zeros(1)), "keys"),
        (lambda: SampledKeys(key_hashes(1), np.array([np.nan])), "keys"),
        (lambda: SampledKeys(key_hashes(1), np.ones(1), -1), "others"),
        (lambda: problem(records_per_s=-1.0), "records_per_s"),
        (lambda: problem(interval_s=float("inf")), "interval_s"),
        (lambda: problem(merge_s=-1e-9), "merge_s"),
        (lambda: problem(aggregators=0), "aggregators"),
        (lambda: ReplayProblem(zipf(), np.array([1.0, 0.0]), 1.0), "capacities[1]"),
        (lambda: ReplayProblem(zipf(), np.zeros(0), 1.0), "workers"),
    ],
)
def test_bad_input_is_named(build: Any, where: str) -> None:
    with pytest.raises(BadProblem) as refused:
        build()
    assert refused.value.where == where


def test_an_unknown_grouping_is_refused() -> None:
    with pytest.raises(UnknownGrouping):
        replay('{"grouping":"nonsense"}', problem(), MESSAGES)
