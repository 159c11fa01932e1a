"""The recommendation: which key grouping with which parameters for a sample of keys.

A candidate is *balanced* if its predicted imbalance is within the limit, and *affordable* if its
aggregator nodes have time to merge its partial results. Among those that are both, the cheapest one
is recommended: the cost is the average number of workers of a key (memory) plus that of a key
within a micro-batch (merge load), so plain key grouping costs 2. Of candidates that cost nearly the
same, the best balanced one is recommended. The present grouping stays unless the gain is worth the
change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from algorithms.estimates import Estimate, ProblemSize
from algorithms.partitioning.catalog import grouping_text, parsed_text
from algorithms.partitioning.replay import (
    BATCHES,
    Replay,
    ReplayProblem,
    draw_messages,
    replay_drawn,
)
from algorithms.vocabulary import MAX_SEED, Parameters, Progress, parameter, silent

# Panes divide time, whatever the keys, so they are not candidates.
VARIANTS: Final[Sequence[tuple[str, Mapping[str, Any]]]] = (
    ("key", {}),
    ("key", {"weighted": True}),
    ("head_aware", {}),
    ("frequency_aware", {}),
    ("consistent_grouping", {}),
    ("partial_key", {}),
    ("bounded_load", {}),
    ("random_choices", {}),
    ("random_choices", {"eps": 0.1}),
    ("two_choices", {}),
    ("shuffle", {}),
)
# The share of its time that an aggregator node may merge.
MERGE_LIMIT: Final = 0.8
# The cost of plain key grouping: no grouping costs less.
LEAST_COST: Final = 2.0
# A candidate that costs so many times the cheapest one costs nearly the same.
NEARLY: Final = 1.05
MAX_MESSAGES: Final = 10_000_000


@dataclass(frozen=True, eq=False)
class RecommendationProblem:
    """A stream, its workers, and the text of the present grouping (`canonical_text`), or None.

    `complete`: False if the other candidates need no replay where the present grouping stays
    whatever they give.
    """

    stream: ReplayProblem
    present: str | None = None
    complete: bool = True


@dataclass(frozen=True)
class GroupingCandidate:
    """A grouping with what it gives; `cost`: see the module; `balanced`, `affordable` likewise."""

    replay: Replay
    cost: float
    balanced: bool
    affordable: bool

    @property
    def text(self) -> str:
        """Return the text of the grouping."""
        return self.replay.text

    @property
    def fits(self) -> bool:
        """Return whether it is balanced and affordable."""
        return self.balanced and self.affordable


@dataclass(frozen=True)
class Recommendation:
    """All candidates, the place of the recommended one, and why.

    `reason`: `present`, the present grouping stays; `balance`, the present one is not balanced or
    not affordable; `cost`, it is cheaper; `only`, there is no present one; `least`, no candidate is
    both, and it is the nearest one.
    """

    candidates: Sequence[GroupingCandidate]
    chosen: int
    reason: str

    @property
    def recommended(self) -> GroupingCandidate:
        """Return the recommended candidate."""
        return self.candidates[self.chosen]


@dataclass(frozen=True)
class Recommend(Parameters):
    """Finds the grouping with the least memory and merge load that keeps a limit of imbalance."""

    limit: float = parameter(
        0.1, title="Largest imbalance", unit="share of capacity", minimum=0.0, maximum=100.0,
        help="The largest predicted imbalance: the load of the fullest worker above that of all.",
    )  # fmt: skip
    saving: float = parameter(
        0.2, title="Least saving", unit="share", minimum=0.0, maximum=1.0,
        help="The least share of cost, or of imbalance above the limit, that a change saves.",
    )  # fmt: skip
    messages: int = parameter(
        30_000, title="Sampled messages", minimum=BATCHES, maximum=MAX_MESSAGES,
        help="The number of messages that are drawn from the sample and measured.",
    )  # fmt: skip
    seed: int = parameter(0, minimum=0, maximum=MAX_SEED, help="The seed of the drawn messages.")

    def estimate(self, size: ProblemSize) -> Estimate:
        """Return the estimate: each stream's messages are replayed under every variant."""
        messages = self.messages * len(VARIANTS) * max(1, size.streams)
        return super().estimate(size).plus(3e-6 * messages, 200.0 * self.messages)

    def solve(self, problem: RecommendationProblem, progress: Progress = silent) -> Recommendation:
        """Return the recommendation for a stream. Raises the errors of the present grouping."""
        drawn = draw_messages(problem.stream, self.messages, self.seed)
        if problem.present is not None and not problem.complete:
            now = self._candidate(replay_drawn(problem.present, problem.stream, drawn))
            if now.fits and (1 - self.saving) * now.cost < LEAST_COST:
                progress(1.0)
                return Recommendation([now], 0, "present")
        texts = candidate_texts(problem)
        candidates = []
        for number, text in enumerate(texts, start=1):
            candidates.append(self._candidate(replay_drawn(text, problem.stream, drawn)))
            progress(number / len(texts))
        place = None if problem.present is None else texts.index(problem.present)
        return self.choose(candidates, place)

    def _candidate(self, result: Replay) -> GroupingCandidate:
        load = result.merge_load
        return GroupingCandidate(
            result,
            _cost(result),
            result.imbalance <= self.limit,
            load is None or load <= MERGE_LIMIT,
        )

    def choose(
        self, candidates: Sequence[GroupingCandidate], present: int | None
    ) -> Recommendation:
        """Return the recommendation among candidates; `present`: the place of the present one."""
        best = self._best(candidates)
        fits = candidates[best].fits
        if present is None:
            return Recommendation(candidates, best, "only" if fits else "least")
        now = candidates[present]
        if best == present or not self._is_worth(candidates[best], now):
            return Recommendation(candidates, present, "present")
        reason = ("cost" if now.fits else "balance") if fits else "least"
        return Recommendation(candidates, best, reason)

    def _best(self, candidates: Sequence[GroupingCandidate]) -> int:
        """Return the place of the best candidate, regardless of the present one."""
        fitting = [place for place, candidate in enumerate(candidates) if candidate.fits]
        if not fitting:
            return min(range(len(candidates)), key=lambda place: self._excess(candidates[place]))
        least = min(candidates[place].cost for place in fitting)
        cheap = [place for place in fitting if candidates[place].cost <= NEARLY * least]
        return min(cheap, key=lambda place: candidates[place].replay.imbalance)

    def _excess(self, candidate: GroupingCandidate) -> float:
        """Return by how many times a candidate exceeds imbalance or time of merging."""
        load = candidate.replay.merge_load or 0.0
        return max(candidate.replay.imbalance / max(self.limit, 1e-9), load / MERGE_LIMIT)

    def _is_worth(self, best: GroupingCandidate, present: GroupingCandidate) -> bool:
        least = 1 - self.saving
        if present.fits:
            return best.fits and best.cost <= least * present.cost
        return self._excess(best) <= least * self._excess(present)


def candidate_texts(problem: RecommendationProblem) -> list[str]:
    """Return the texts of the candidates, the present grouping included, each once."""
    variants = [
        (name, given)
        for name, given in VARIANTS
        # Equal workers have equal parts anyway.
        if not (problem.stream.workers.equal and given == {"weighted": True})
    ]
    texts = [grouping_text(name, given) for name, given in variants]
    if problem.present is not None and problem.present not in texts:
        texts.append(problem.present)
    return texts


def canonical_text(text: str) -> str:
    """Return the text of a grouping with the parameters that differ from their defaults only.

    Raises `UnknownGrouping` or `BadParameters`.
    """
    return grouping_text(*parsed_text(text))


def _cost(result: Replay) -> float:
    """Return the workers of a key in all messages plus those in a micro-batch, on average."""
    return result.pairs_per_key + (result.batch_pairs_per_key or result.pairs_per_key)
