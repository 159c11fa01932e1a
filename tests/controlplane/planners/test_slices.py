"""A planner is a folder: its input, loop and page are found by their modules."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from controlplane.planning.snapshots import keep_snapshot, take_snapshot
from controlplane.plans.snapshot import ClusterSnapshot, canonical
from tests.planners.mixed.inputs import MixedInput
from tests.planners.mixed.loop import LOOPS
from tests.planners.mixed.observation import read_input
from tests.support.execution import scattered
from tests.support.watching import looked

ROOT: Final = Path(__file__).parents[3]
# Slices and the places beside them that a planner with an input, a loop, pages and settings has.
PLACES: Final = ("algorithms", "controlplane/planners", "dashboard/planners")
FOUND: Final = """
import django, json
django.setup()
from django.urls import reverse
from controlplane.planning.adapters import adapters
from controlplane.watch import all_loops
from dashboard.navigation import cluster_pages
print(json.dumps([list(adapters()), [loop.name for loop in all_loops()],
                  [page.label for page in cluster_pages()], reverse("mixed", args=["sf"])]))
"""


def test_a_distribution_brings_an_adapter_a_loop_and_a_page() -> None:
    """Its entry point is the only place beside its folder."""
    paths = [str(ROOT), str(ROOT / "tests" / "planners")]
    settings = {"DJANGO_SETTINGS_MODULE": "controlplane.settings"}
    environment = {**os.environ, **settings, "PYTHONPATH": os.pathsep.join(paths)}
    found = subprocess.run(
        [sys.executable, "-c", FOUND], env=environment, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    planners, loops, pages, address = json.loads(found.stdout)
    assert planners == ["placement", "migration", "admission", "partitioning", "shedding", "mixed"]
    assert loops[-2:] == ["admission", "oldest query"]
    assert pages[pages.index("Compare") + 1 : pages.index("Ledger")] == ["Shedding", "Mixed"]
    assert address == "/clusters/sf/mixed/"


@pytest.mark.django_db(transaction=True)
def test_its_input_is_in_a_stored_snapshot(operator: Actor, sf: Cluster) -> None:
    snapshot = take_snapshot(scattered(operator, sf).pk, 0.1, {read_input})
    given = snapshot.input(MixedInput)
    assert given is not None
    assert set(given.ages) == {query.id for query in snapshot.queries}
    row = keep_snapshot(snapshot)
    stored = ClusterSnapshot.from_json(json.loads(canonical(snapshot.to_json())))
    assert canonical(stored.to_json()) == canonical(snapshot.to_json()), "without its planner"
    assert stored.input(MixedInput) == given
    assert row.is_whole
    reading = LOOPS[0].read(looked(cluster=sf))
    assert reading.number == pytest.approx(max(given.ages.values()), abs=60)
    assert not reading.trouble


def test_no_planner_of_weir_has_another_folder() -> None:
    """Folders of the name of a planner, beside its algorithms, slice, pages and data plane."""
    names = {path.name for path in (ROOT / "controlplane/planners").iterdir() if path.is_dir()}
    folders = {
        path.parent.relative_to(ROOT).as_posix()
        for part in ("algorithms", "controlplane", "dashboard")
        for name in names
        for path in (ROOT / part).rglob(f"{name}/__init__.py")
        if "lab" not in path.parts
    }
    assert {str(Path(folder).parent) for folder in folders} == set(PLACES)
