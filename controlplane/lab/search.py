"""Search in the titles of experiments."""

from collections.abc import Iterator
from typing import Final

from controlplane.access.roles import VIEWER, Actor
from controlplane.lab.runs import all_experiments
from controlplane.lists.search.hits import MAX_PER_KIND, Hit, HitKind, match_of


def search_experiments(actor: Actor, words: list[str]) -> Iterator[Hit]:
    """Yield experiments of the Lab, which viewers of all clusters may see."""
    if not actor.may(VIEWER):
        return
    hits = []
    for planner, experiments in all_experiments().items():
        for row in experiments:
            match = match_of(row.title, words)
            if match is not None:
                key = f"{planner}/{row.name}"
                hits.append(Hit(HitKind.EXPERIMENT, row.title, key, match, detail=planner))
    yield from sorted(hits, key=lambda hit: (hit.match, hit.name))[:MAX_PER_KIND]


SEARCHES: Final = ((HitKind.EXPERIMENT, search_experiments),)
