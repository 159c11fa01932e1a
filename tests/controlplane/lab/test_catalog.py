"""The list of experiments: search, figures, and results of runs or stored ones."""

import pytest

from algorithms.lab.experiments import EXPERIMENTS, Experiment, experiment
from algorithms.lab.references import FOLDER, reference_of
from controlplane import lab
from controlplane.access.roles import Actor
from controlplane.lab.catalog import catalog, figure_of
from controlplane.lab.drawing import thumbnail_svg
from controlplane.models import LabRun
from tests.controlplane.lab.small_experiments import NAME, PLANNER, know, small_experiment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("lab")]
STORED = [
    item
    for known in EXPERIMENTS.values()
    for item in known
    if (FOLDER / f"{item.planner}-{item.name}.json").exists()
]


def names(actor: Actor, words: str) -> set[str]:
    return {
        entry.experiment.name
        for paper in catalog(actor, words)
        for group in paper.figures
        for entry in group.entries
    }


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("fig9 storm", {"fig9"}),
        ("Figure 12 paper 001", {"panes"}),
        ("plateau", {"fig3b"}),
        ("hypergraph nothing", set()),
    ],
)
def test_all_words_are_searched_in_names_claims_and_series(
    viewer: Actor, words: str, found: set[str]
) -> None:
    assert names(viewer, words) == found


def test_every_experiment_is_in_one_group(viewer: Actor) -> None:
    """By paper, then by figure, in the order of the papers."""
    papers = {paper.planner: paper for paper in catalog(viewer)}
    assert set(papers) == set(EXPERIMENTS)
    figures = {name: [group.title for group in paper.figures] for name, paper in papers.items()}
    assert figures["placement"] == [f"Figure {number}" for number in range(3, 8)]
    assert figures["admission"][-1] == "Further experiments"
    assert figure_of(experiment("partitioning", "panes")) == "Figure 12"


def test_the_result_is_that_of_the_newest_finished_run(
    operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that the actor sees; a run that failed has none."""
    know(monkeypatch, small_experiment())

    def result() -> tuple[int, int]:
        (paper,) = catalog(operator, "small experiment")
        entry = paper.figures[0].entries[0]
        return entry.result.run if entry.result else 0, entry.runs

    assert result() == (0, 0)
    runs = [lab.request(operator, PLANNER, NAME, {"seeds": 1, "height": h}) for h in (1, 2, 3)]
    for run in runs[:2]:
        lab.run(run.pk)
    LabRun.objects.filter(pk=runs[2].pk).update(state="failed")
    assert result() == (runs[1].pk, 3)


@pytest.mark.parametrize("item", STORED, ids=lambda item: f"{item.planner}-{item.name}")
def test_a_stored_result_has_the_columns_and_series_of_its_experiment(item: Experiment) -> None:
    """A renamed series or measure needs a new one: python -m algorithms.lab.references."""
    reference = reference_of(item)
    assert reference is not None
    drawn = (item.x.name, "series", "seed", *(panel.y.name for panel in item.panels))
    assert reference.table.columns == drawn
    assert set(reference.table.column("series")) <= set(item.choices)
    assert "<path" in thumbnail_svg(item, reference.table)


@pytest.mark.parametrize("item", STORED, ids=lambda item: f"{item.planner}-{item.name}")
def test_a_stored_result_is_as_large_as_its_claims_need(item: Experiment) -> None:
    reference = reference_of(item)
    assert reference is not None
    parameters = item.parameters.from_mapping(reference.parameters).to_mapping()
    scale = {name: least for name, least in item.claim_scale if name in parameters}
    assert {
        name: parameters[name] for name, least in scale.items() if parameters[name] < least
    } == {}
