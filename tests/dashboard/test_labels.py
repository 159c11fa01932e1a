"""Labels that people did not understand are on no page and in no message."""

import re
from pathlib import Path
from typing import Final

import pytest
from django.test import Client

from controlplane.models import Cluster
from controlplane.proposals.outcome import MeasureStatus
from controlplane.topology.applicability import Obstacle
from controlplane.watch import CODES
from dashboard.proposals.list_rows import WORSENS_ANOTHER
from dashboard.proposals.page import obstacle_words
from dashboard.templatetags.plans import STATUSES

pytestmark = pytest.mark.nightly("pages")

ROOT: Final = Path(__file__).parents[2]
# A label that was replaced, and what stands for it now.
REPLACED: Final = {
    "What became of it": "Status",
    "Ask for it anew": "Recompute",
    "The way back": "Rollback cost",
    "On the way": "Peak imbalance during execution",
    "Carrying out": "In progress",
    "Carried out": "Completed",
    "What applies by itself": "Auto-approval",
    "Mended when below by": "Clear threshold",
    "Resolved when below by": "Clear threshold",
    "Good from": "Minimum executed plans",
    "Off by at most": "Maximum median error",
    "What it is told": "Events",
    "May at most": "Role",
    "Make it": "Create token",
    "Leave it": "Cancel",
    "For those who ask later": "kept in the audit log",
    "do not belong together": "Incorrect user name or password",
    "spoils": "Worsens another measure",
    "Keys find their task": "Key partitioning",
    "Dropped on purpose": "Load shedding",
    "Load now, in its declared capacity": "Current load and capacity",
    "cannot be.<": "correct",
    "Heard of": "Last report",
    "Cron line": "Cron expression",
    "left out": "skipped",
    ">silent<": "Not reporting",
    '"silent"': "Not reporting",
    ">within<": "OK",
    '"within"': "OK",
}
_TEMPLATE_CODE: Final = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", re.DOTALL)
_ATTRIBUTE_NAMES: Final = re.compile(r'(class|id|name|data-code)="[^"]*"')


def shown_texts() -> dict[str, str]:
    """Return the text of each template, and the labels of settings, without code."""
    texts = {
        path.name: _ATTRIBUTE_NAMES.sub("", _TEMPLATE_CODE.sub("", path.read_text()))
        for path in (ROOT / "dashboard").rglob("*.html")
    }
    settings = ROOT / "controlplane/policies/settings.py"
    return texts | {settings.name: settings.read_text()}


def test_states_of_measures_processes_and_actions_are_words_that_people_know(
    operating: Client, sf: Cluster
) -> None:
    """OK, Worsens another measure, Not reporting, 141 applied, 48 skipped (query ended)."""
    assert STATUSES[MeasureStatus.KEPT] == "OK"
    assert obstacle_words(Obstacle.ENDED) == "query ended"
    assert (CODES["within"].title, CODES["balanced"].title) == ("OK", "OK")
    assert CODES["spoils"].title == "Worsens another measure"
    assert CODES["silent"].title == "Not reporting"
    assert WORSENS_ANOTHER == "worsens another measure"
    states = operating.get("/system/").content.decode()
    assert "Not reporting" in states, "no process of Weir runs in a test"
    assert "silent" not in states.lower()


def test_no_replaced_label_is_left() -> None:
    texts = shown_texts()
    left = [
        f"{name}: {label} → {REPLACED[label]}"
        for name, text in texts.items()
        for label in REPLACED
        if label in text
    ]
    assert left == []
