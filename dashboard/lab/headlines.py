"""Headlines of the Lab and of an experiment: how many claims of the papers hold."""

from collections.abc import Sequence
from datetime import datetime

from django.urls import reverse

from algorithms.lab.experiments import Experiment
from controlplane.lab.catalog import PaperGroup
from controlplane.lab.outcomes import ClaimOutcomes
from controlplane.models import LabRun
from controlplane.numbers import age, counted
from dashboard.frame.headline import Headline


def catalog_headline(papers: Sequence[PaperGroup], queued: int) -> Headline:
    """Return how many claims hold in the newest results; `queued`: waiting runs."""
    entries = [entry for paper in papers for group in paper.figures for entry in group.entries]
    outcomes = [entry.result.outcomes for entry in entries if entry.result]
    tested = sum(item.tested for item in outcomes)
    holding = sum(item.holding for item in outcomes)
    claims = sum(len(entry.experiment.claims) for entry in entries)
    why = (
        f"{counted(len(entries), 'experiments')} with {counted(claims, 'claims')}; each is checked"
        " on its newest finished run, else on a stored small run of Weir."
        f" {counted(queued, 'runs') if queued else 'No run is'} in the queue."
    )
    what = f"{holding} of {tested} tested claims of the papers hold"
    return Headline(what, why, "good" if tested and holding == tested else "", icon="info")


def experiment_headline(
    experiment: Experiment, outcomes: ClaimOutcomes | None, newest: LabRun | None, now: datetime
) -> Headline:
    """Return how many claims hold in the newest result of an experiment.

    `outcomes`: those of the newest finished run, else of the stored result, None without both.
    """
    source = newest.title if newest is not None else "the stored result"
    if outcomes is not None and outcomes.tested:
        tested = counted(outcomes.tested, "claims")
        verb = "holds" if outcomes.tested == 1 else "hold"
        what = f"{outcomes.holding} of {tested} {verb} in {source}"
    elif experiment.claims:
        what = f"{counted(len(experiment.claims), 'claims')}, not tested yet"
    else:
        what = "The paper has no claim about this sweep"
    grade = ""
    if outcomes is not None and outcomes.tested:
        grade = "good" if outcomes.holding == outcomes.tested else "warn"
    if newest is not None and newest.finished_at is not None:
        why = f"The newest finished run, {age(newest.finished_at, now)}."
        return Headline(what, why, grade, icon="info", link=reverse("lab-run", args=[newest.pk]),
                        link_title="Open the run")  # fmt: skip
    if outcomes is None:
        return Headline(what, "Start a run to test them.", grade, icon="info")
    why = "Computed with one seed and a small workload; a run with the defaults below decides."
    return Headline(what, why, grade, icon="info")
