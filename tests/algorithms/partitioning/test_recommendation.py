"""The recommendation: which candidate is chosen and why, by hand and on replays."""

from typing import Any

import numpy as np
import pytest

from algorithms.errors import BadParameters
from algorithms.lab.partitioning.workloads import zipf_shares
from algorithms.partitioning.recommendation import (
    VARIANTS,
    GroupingCandidate,
    Recommend,
    RecommendationProblem,
    candidate_texts,
    canonical_text,
)
from algorithms.partitioning.replay import Replay, ReplayProblem, SampledKeys, key_hashes, replay

KEY, PARTIAL = "", '{"grouping":"partial_key"}'


def candidate(imbalance: float, cost: float, *, load: float | None = None) -> GroupingCandidate:
    """Return a candidate with these values, within the default limit or not."""
    none = np.zeros(0)
    result = Replay("", none, imbalance, 1, 1, 1, 1, 1, 1.0, load, none.astype(np.int64))
    return GroupingCandidate(result, cost, imbalance <= 0.1, load is None or load <= 0.8)


def chosen(candidates: list[GroupingCandidate], present: int | None = None) -> tuple[int, str]:
    result = Recommend().choose(candidates, present)
    return result.chosen, result.reason


def test_the_cheapest_balanced_candidate_is_recommended() -> None:
    rows = [candidate(0.5, 2.0), candidate(0.08, 3.0), candidate(0.01, 4.0)]
    assert chosen(rows) == (1, "only")
    assert chosen(rows, present=0) == (1, "balance")
    assert chosen(rows, present=1) == (1, "present")


def test_a_change_must_be_worth_it() -> None:
    rows = [candidate(0.05, 3.0), candidate(0.05, 2.5)]
    assert chosen(rows, present=0) == (0, "present")
    rows[1] = candidate(0.05, 2.4)
    assert chosen(rows, present=0) == (1, "cost")


def test_of_equally_cheap_candidates_the_best_balanced_is_recommended() -> None:
    rows = [candidate(0.09, 2.00), candidate(0.01, 2.09), candidate(0.00, 2.11)]
    assert chosen(rows) == (1, "only")
    assert chosen(rows, present=0) == (0, "present")


def test_a_candidate_that_aggregators_cannot_merge_is_none() -> None:
    rows = [candidate(0.01, 2.5, load=0.9), candidate(0.09, 3.0, load=0.7)]
    assert chosen(rows) == (1, "only")
    assert chosen(rows, present=0) == (1, "balance")


def test_without_a_balanced_candidate_the_nearest_one_is_recommended() -> None:
    rows = [candidate(0.5, 2.0), candidate(0.2, 3.0), candidate(0.3, 2.5)]
    assert chosen(rows) == (1, "least")
    assert chosen(rows, present=0) == (1, "least")
    assert chosen([candidate(0.21, 2.0), *rows[1:]], present=0) == (0, "present")


def problem(present: str | None = None, **changed: Any) -> RecommendationProblem:
    """Return a stream with a key of 31 % of the records, which is too much for one worker."""
    shares = np.concatenate([[0.31], 0.69 * zipf_shares(0.9, 1_839)])
    given: dict[str, Any] = {
        "keys": SampledKeys(key_hashes(1_840), shares), "records_per_s": 3_600.0,
        "capacities": np.array([1_000.0] * 6 + [1_500.0] * 2), "merge_s": 1e-5,
    }  # fmt: skip
    return RecommendationProblem(ReplayProblem(**given | changed), present)


def test_a_hot_key_is_spread() -> None:
    result = Recommend().solve(problem(KEY))
    now = next(row for row in result.candidates if row.text == KEY)
    assert (result.reason, now.balanced) == ("balance", False)
    assert result.recommended.replay.imbalance <= 0.1
    costs = [row.cost for row in result.candidates if row.fits]
    assert result.recommended.cost <= 1.05 * min(costs)
    assert result.recommended.replay.pairs_per_key < 1.1
    assert now.cost == pytest.approx(2.0)


def test_even_keys_keep_plain_key_grouping() -> None:
    keys = SampledKeys(key_hashes(5_000), np.full(5_000, 1 / 5_000))
    result = Recommend().solve(problem(KEY, keys=keys, capacities=np.full(8, 1_000.0)))
    assert (result.recommended.text, result.reason) == (KEY, "present")
    assert Recommend().solve(problem(keys=keys, capacities=np.full(8, 1_000.0))).reason == "only"


def test_a_stream_far_below_the_capacity_needs_no_change() -> None:
    """An imbalance of capacity does not exceed the share of capacity that is used."""
    assert Recommend().solve(problem(KEY, records_per_s=50.0)).reason == "present"


def test_the_recommendation_is_that_of_its_replays() -> None:
    """The certificate: each number is that of a replay with the same seed."""
    given, settings = problem(PARTIAL), Recommend(messages=9_000, seed=5)
    for row in settings.solve(given).candidates:
        again = replay(row.text, given.stream, 9_000, 5)
        assert again.assignment.tolist() == row.replay.assignment.tolist()
        assert row.cost == pytest.approx(again.pairs_per_key + again.batch_pairs_per_key)
        assert (row.balanced, row.affordable) == (again.imbalance <= 0.1, True)


def test_a_grouping_that_no_candidate_improves_is_replayed_alone() -> None:
    keys = SampledKeys(key_hashes(5_000), np.full(5_000, 1 / 5_000))
    whole = problem(KEY, keys=keys, capacities=np.full(8, 1_000.0))
    short = Recommend().solve(RecommendationProblem(whole.stream, KEY, complete=False))
    assert [row.text for row in short.candidates] == [KEY]
    assert (short.recommended.text, short.reason) == (KEY, Recommend().solve(whole).reason)
    for given in (problem(KEY), problem(None), problem('{"grouping":"shuffle"}')):
        some = RecommendationProblem(given.stream, given.present, complete=False)
        results = Recommend().solve(some), Recommend().solve(given)
        assert len({len(result.candidates) for result in results}) == 1
        assert len({result.recommended.text for result in results}) == 1


def test_candidates_are_the_variants_and_the_present_grouping() -> None:
    own = '{"eps":0.5,"grouping":"random_choices"}'
    texts = candidate_texts(problem(own))
    assert len(texts) == len(set(texts)) == len(VARIANTS) + 1
    assert own in texts
    equal = candidate_texts(problem(KEY, capacities=np.full(8, 1_000.0)))
    assert len(equal) == len(VARIANTS) - 1
    assert canonical_text('{"grouping":"partial_key"}') == PARTIAL


def test_progress_ends_at_one() -> None:
    shares: list[float] = []
    Recommend(messages=300).solve(problem(), shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize("given", [{"limit": -0.1}, {"saving": 2.0}, {"messages": 1}, {"seed": -1}])
def test_parameters_have_bounds(given: dict[str, Any]) -> None:
    with pytest.raises(BadParameters):
        Recommend(**given)
