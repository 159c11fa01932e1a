"""The experiments as a searchable list: by paper and figure, each with its newest result.

The newest result is the table of the newest finished run that the actor sees, else the stored
reference, which is computed with few seeds and smaller workloads.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from algorithms.lab.experiments import Experiment, Table
from algorithms.lab.references import reference_of
from algorithms.lab.registry import PLANNERS
from controlplane.access.roles import Actor
from controlplane.lab.drawing import thumbnail_svg
from controlplane.lab.outcomes import ClaimOutcomes, outcomes_of
from controlplane.lab.runs import all_experiments, newest_done, run_counts
from controlplane.models import LabRun

_FIGURE: Final = re.compile(r"\b(figure|table) (\d+)", re.IGNORECASE)
_FURTHER: Final = "Further experiments"
# A table has up to 20,000 rows; its drawing and its outcomes do not change.
_CACHED: Final = 500


@dataclass(frozen=True)
class Result:
    """A drawing of a table and the outcomes of the claims on it; `run`: 0 for a reference."""

    thumbnail: str
    outcomes: ClaimOutcomes
    run: int = 0


@dataclass(frozen=True)
class CatalogEntry:
    """An experiment with its newest result, None without any, and the number of its runs."""

    experiment: Experiment
    result: Result | None
    runs: int


@dataclass(frozen=True)
class FigureGroup:
    """The experiments of one figure of a paper."""

    title: str
    entries: tuple[CatalogEntry, ...]


@dataclass(frozen=True)
class PaperGroup:
    """The figures of the experiments of one planner."""

    planner: str
    title: str
    figures: tuple[FigureGroup, ...]

    @property
    def count(self) -> int:
        """Return the number of its experiments."""
        return sum(len(figure.entries) for figure in self.figures)

    @property
    def claims(self) -> str:
        """Return how many claims hold in the newest results, "" if none was tested."""
        results = [entry.result for figure in self.figures for entry in figure.entries]
        outcomes = [result.outcomes for result in results if result is not None]
        tested = sum(row.tested for row in outcomes)
        return f"{sum(row.holding for row in outcomes)} of {tested} claims hold" if tested else ""


def catalog(actor: Actor, words: str = "") -> list[PaperGroup]:
    """Return the experiments that match all words, by paper and figure.

    Words are searched in names, titles, figures, descriptions, claims, series and the planner.
    """
    newest, counts = newest_done(actor), run_counts(actor)
    titles = {planner.name: planner.title for planner in PLANNERS}
    wanted = words.lower().split()
    groups = []
    for planner, experiments in all_experiments().items():
        title = titles.get(planner, planner)
        kept = [item for item in experiments if matches(item, title, wanted)]
        entries = [
            CatalogEntry(
                item,
                newest_result(item, newest.get((planner, item.name))),
                counts.get((planner, item.name), 0),
            )
            for item in kept
        ]
        if entries:
            groups.append(PaperGroup(planner, title, _by_figure(entries)))
    return groups


def matches(experiment: Experiment, planner_title: str, words: list[str]) -> bool:
    """Return True if an experiment has all of these words, in lower case."""
    text = " ".join((
        experiment.planner, planner_title, experiment.name, experiment.title, experiment.about,
        experiment.x.label, *experiment.series, *(claim.text for claim in experiment.claims),
        *(claim.source for claim in experiment.claims),
    )).lower()  # fmt: skip
    return all(word in text for word in words)


def figure_of(experiment: Experiment) -> str:
    """Return the figure or table that an experiment repeats, as "Figure 3"; "" for none."""
    match = re.match(r"(fig|table)(\d+)", experiment.name)
    if match:
        return f"{'Figure' if match[1] == 'fig' else 'Table'} {match[2]}"
    sources = [claim.source for claim in experiment.claims]
    named = next(filter(None, (_FIGURE.search(source) for source in sources)), None)
    return f"{named[1].capitalize()} {named[2]}" if named else ""


def newest_result(experiment: Experiment, run: LabRun | None) -> Result | None:
    """Return the result of a finished run, else of the stored reference, else None."""
    if run is not None and run.finished_at is not None:
        # Another run may get the number of a deleted one.
        return _of_run(experiment, run.pk, run.finished_at.isoformat())
    return _of_reference(experiment)


@lru_cache(_CACHED)
def _of_run(experiment: Experiment, pk: int, finished: str) -> Result | None:
    del finished
    kept = LabRun.objects.filter(pk=pk).values_list("table", "parameters").first()
    return _drawn(experiment, Table.from_json(kept[0]), kept[1], pk) if kept else None


@lru_cache(_CACHED)
def _of_reference(experiment: Experiment) -> Result | None:
    reference = reference_of(experiment)
    return _drawn(experiment, reference.table, reference.parameters, 0) if reference else None


def _drawn(experiment: Experiment, table: Table, parameters: Mapping[str, Any], run: int) -> Result:
    outcomes = outcomes_of(experiment, table, parameters)
    return Result(thumbnail_svg(experiment, table), outcomes, run)


def _by_figure(entries: list[CatalogEntry]) -> tuple[FigureGroup, ...]:
    groups: dict[str, list[CatalogEntry]] = {}
    for entry in entries:
        groups.setdefault(figure_of(entry.experiment) or _FURTHER, []).append(entry)
    return tuple(FigureGroup(title, tuple(kept)) for title, kept in groups.items())
