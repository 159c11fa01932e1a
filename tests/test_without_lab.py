"""Weir works where no package named `lab` is installed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

# By day the contract of imports says that nothing outside of the Lab imports it.
pytestmark = pytest.mark.nightly("package")

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("algorithms", "controlplane", "dashboard", "workers")
SCRIPT: Final = """
import json, sys

# An editable installation finds the packages of the repository, too.
sys.meta_path = [finder for finder in sys.meta_path if "weir" not in repr(finder)]
import django

django.setup()
from django.core.management import call_command, get_commands
from django.urls import Resolver404, resolve

call_command("check")

import controlplane
from algorithms.registry import PLANNERS
from algorithms.placement.problem import PlacementProblem
from controlplane.api.application import api
from controlplane.cli.parser import parser
from controlplane.planning.adapters import adapters
from controlplane.processes.runtime.process_kinds import PROCESSES
from controlplane.lists.search import objects
from dashboard.frame.keys import KEYS
from dashboard.glossary import WORDS
from dashboard.navigation import SITE_PAGES
from workers import celery, tasks

def is_resolved(path):
    try:
        return bool(resolve(path))
    except Resolver404:
        return False

celery.app.loader.import_default_modules()
problem = PlacementProblem.from_lists([1.0, 2.0], [[0], [0, 1]], 2, 0.5)
plan = PLANNERS[0].algorithm("mms").solve(problem)
json.dump({
    "place": controlplane.__file__,
    "paths": {path: is_resolved(path) for path in ("/", "/api/v1/openapi.json", "/lab/")},
    "operations": sorted(api.get_openapi_schema()["paths"]),
    "navigation": [page.name for page in SITE_PAGES],
    "keys": [key.url for key in KEYS],
    "help": parser(None).format_help(),
    "words": [term.word for term in WORDS],
    "processes": [kind.name for kind in PROCESSES],
    "tasks": sorted(celery.app.tasks),
    "beat": sorted(celery.app.conf.beat_schedule),
    "commands": sorted(get_commands()),
    "planners": sorted(adapters()),
    "searches": [str(kind) for kind in objects._searches()],
    "assigned": len(plan.assignment),
    "modules": sorted(name for name in sys.modules if name.split(".")[1:2] == ["lab"]),
}, sys.stdout)
"""


@pytest.fixture(scope="module")
def weir(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what Weir has in a process that sees its packages without those of the Lab."""
    folder = tmp_path_factory.mktemp("weir")
    for package in PACKAGES:
        skipped = shutil.ignore_patterns("lab", "__pycache__")
        shutil.copytree(ROOT / package, folder / package, ignore=skipped)
    (folder / "static").symlink_to(ROOT / "static")
    environment = os.environ | {
        "PYTHONPATH": str(folder), "DJANGO_SETTINGS_MODULE": "controlplane.settings",
        "WEIR_DATA": str(folder / "data"), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=folder, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert Path(found["place"]).is_relative_to(folder)
    return found


def test_pages_and_api_are_there_without_those_of_the_lab(weir: Any) -> None:
    assert weir["paths"] == {"/": True, "/api/v1/openapi.json": True, "/lab/": False}
    assert "/api/v1/clusters" in weir["operations"]
    assert not [path for path in weir["operations"] if "/lab" in path]


def test_no_page_leads_to_the_lab(weir: Any) -> None:
    assert {"alerts", "audit", "help"} <= set(weir["navigation"])
    assert "lab" not in weir["navigation"]
    assert not [url for url in weir["keys"] if "lab" in url]
    assert "Lab" not in weir["words"]
    assert "proposals" in weir["help"]
    assert "Lab" not in weir["help"]
    assert "experiment" not in weir["searches"]


def test_nothing_of_the_lab_runs(weir: Any) -> None:
    assert "lab" not in weir["processes"]
    assert "lab" not in weir["commands"]
    assert {"weir.place", "weir.watch"} <= set(weir["tasks"])
    assert not [name for name in (*weir["tasks"], *weir["beat"]) if "lab" in name]
    assert weir["modules"] == []


def test_planners_plan(weir: Any) -> None:
    assert weir["planners"] == ["admission", "migration", "partitioning", "placement", "shedding"]
    assert weir["assigned"] == 2
