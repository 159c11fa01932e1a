"""The pages of comparisons and the ledger, and dropping moves on that of a proposal."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Comparison, LedgerEntry, Proposal
from controlplane.policies.assessment import Assessment
from controlplane.policies.planner_record import FLOORS
from controlplane.proposals import comparisons, computation, requests
from dashboard.proposals.measure_rows import LEDGER

Asking = list[tuple[str, str, dict[str, Any]]]
pytestmark = pytest.mark.django_db(transaction=True)
BASE = "/clusters/sf"


def text(client: Client, path: str, **more: Any) -> str:
    answer = client.get(f"{BASE}{path}", **more)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


@pytest.fixture
def comparison(operator: Actor, sf: Cluster) -> Comparison:
    """Two candidates, of which the first is computed."""
    asked: Asking = [("placement", "mms", {"nu": 1.0}), ("placement", "off_rand", {"nu": 1.0})]
    found = comparisons.compare(operator, sf, asked)
    computation.compute(found.candidates.order_by("pk")[0].pk)
    return found


@pytest.fixture
def ledger(ready: Proposal) -> LedgerEntry:
    """One entry."""
    return LedgerEntry.objects.create(
        proposal=ready, cluster=ready.cluster, planner="placement", algorithm="mms",
        approved={"imbalance": 0.2, "bytes": 2e6}, expected={"imbalance": 0.22, "bytes": 2e6},
        measured={"imbalance": 0.25, "bytes": 3e6},
        applied=3, skipped=1, samples=30, at=timezone.now(),
    )  # fmt: skip


def test_the_form_offers_every_algorithm_and_asks_for_a_comparison(
    operating: Client, sf: Cluster
) -> None:
    content = text(operating, "/compare/")
    assert 'value="placement.mms"' in content
    assert 'value="migration.single_step"' in content
    assert "No planners were compared yet" in content
    form = {
        "asked": ["placement.mms", "placement.off_rand"], "placement.mms.nu": "0.7",
        "placement.off_rand.seed": "5", "levels": "25, 100 %", "moves": "40",
    }  # fmt: skip
    answer = operating.post(f"{BASE}/compare/ask/", form)
    comparison = Comparison.objects.get()
    assert answer["Location"] == f"{BASE}/compare/{comparison.pk}/"
    found = [(one.algorithm, one.parameters) for one in comparison.candidates.order_by("pk")]
    assert [name for name, _ in found] == ["mms", "mms", "off_rand", "off_rand"]
    assert found[0][1] == {"nu": 0.7, "budget": {"moves": 40.0, "share": 0.25}}
    assert found[1][1]["budget"] == {"moves": 40.0}
    assert found[2][1]["seed"] == 5


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"levels": "many"}, "Must be percentages"),
        ({"bytes": "-3"}, "Must be a number of at least 0"),
        ({"placement.mms.nu": "much"}, 'id="faults-placement.mms.nu"'),
        ({"asked": []}, "Choose at least one planner"),
    ],
)
def test_faults_are_shown_where_they_are(
    operating: Client, sf: Cluster, changed: dict[str, Any], told: str
) -> None:
    """With everything as it was filled in."""
    form = {"asked": ["placement.mms"], "placement.mms.nu": "0.7", "moves": "40"} | changed
    answer = operating.post(f"{BASE}/compare/ask/", form)
    assert answer.status_code == 422
    content = answer.content.decode()
    assert told in content
    assert '<label for="p-placement.mms.nu">Uneven load allowed</label>' in content
    assert 'value="40"' in content
    assert not Comparison.objects.exists()


def test_progress_is_shown_with_a_way_to_cancel_one_or_all(
    operating: Client, viewing: Client, comparison: Comparison
) -> None:
    path = f"/compare/{comparison.pk}/"
    content = text(operating, path)
    assert "Cancel all" in content
    assert "<progress" in content
    assert "weir:tick" in content
    assert "Cancel" not in text(viewing, path)
    second = comparison.candidates.order_by("pk")[1]
    operating.post(f"{BASE}{path}cancel/", {"proposal": second.pk})
    second.refresh_from_db()
    assert second.state == "rejected"
    content = text(operating, path)
    assert "weir:tick" not in content, "nothing computes any more: the page is at rest"
    assert "1 plan cancelled" not in content


def test_all_are_cancelled(operating: Client, operator: Actor, sf: Cluster) -> None:
    asked: Asking = [("placement", "mms", {}), ("placement", "off_rand", {})]
    comparison = comparisons.compare(operator, sf, asked)
    operating.post(f"{BASE}/compare/{comparison.pk}/cancel/")
    assert "2 plans cancelled" in text(operating, f"/compare/{comparison.pk}/")


def test_every_plan_is_a_row_and_a_point_that_lead_to_its_proposal(
    viewing: Client, comparison: Comparison
) -> None:
    first, second = comparison.candidates.order_by("pk")
    computation.compute(second.pk)
    content = text(viewing, f"/compare/{comparison.pk}/", headers={"hx-request": "true"})
    for one in (first, second):
        assert f'href="{BASE}/proposals/{one.pk}/"' in content
    assert "Best trade-off" in content
    drawn = viewing.get(f"{BASE}/compare/{comparison.pk}/charts.json").json()["figures"]
    assert set(drawn) == {"imbalance", "replication_factor"}
    urls = [
        point[0] for trace in drawn["imbalance"]["data"] for point in trace.get("customdata", [])
    ]
    assert set(urls) == {f"{BASE}/proposals/{one.pk}/" for one in (first, second)}


def test_effects_are_shown_and_moves_dropped(
    operating: Client, viewing: Client, ready: Proposal
) -> None:
    content = text(operating, f"/proposals/{ready.pk}/")
    assert f'hx-get="{BASE}/proposals/{ready.pk}/effects/"' in content
    path = f"/proposals/{ready.pk}/effects/"
    assert 'name="place"' not in text(viewing, path)
    content = text(operating, path)
    assert content.count('name="place"') == len(ready.actions)
    refused = operating.post(f"{BASE}/proposals/{ready.pk}/without/", {"place": ["99"]})
    assert refused["Location"] == f"{BASE}/proposals/{ready.pk}/"
    if len(ready.actions) > 1:
        answer = operating.post(f"{BASE}/proposals/{ready.pk}/without/", {"place": ["0"]})
        derived = Proposal.objects.get(base=ready)
        assert answer["Location"] == f"{BASE}/proposals/{derived.pk}/"
        assert len(derived.actions) == len(ready.actions) - 1


def test_what_has_no_plan_has_no_effects(operating: Client, operator: Actor, sf: Cluster) -> None:
    computing = requests.request(operator, sf)
    assert operating.get(f"{BASE}/proposals/{computing.pk}/effects/").status_code == 404


def test_the_ledger_says_what_will_be_there(viewing: Client, sf: Cluster) -> None:
    assert "No plan was executed and measured yet" in text(viewing, "/ledger/")


def test_the_ledger_shows_predicted_and_measured(viewing: Client, ledger: LedgerEntry) -> None:
    content = text(viewing, "/ledger/")
    assert f"Proposal {ledger.proposal_id}" in content
    assert "over 1 executed plan<" in content
    assert "1.50" in content, "bytes were half as much again as predicted"
    drawn = viewing.get(f"{BASE}/ledger/charts.json").json()["figures"]
    assert set(drawn) == {"imbalance", "bytes"}
    points = drawn["bytes"]["data"][1]
    assert (points["x"], points["y"]) == ([2e6], [3e6])


def test_a_figure_has_a_chart_once_enough_plans_have_it(
    viewing: Client, ledger: LedgerEntry
) -> None:
    """Those that were rolled back are no points."""
    for outcome in ("done", "done", "rolled back", "rolled back", "done", "done"):
        assert viewing.get(f"{BASE}/ledger/").context["charted"] == {}
        ledger.proposal.pk = ledger.pk = None
        ledger.proposal.save()
        ledger.proposal, ledger.outcome = ledger.proposal, outcome
        ledger.save()
    assert set(viewing.get(f"{BASE}/ledger/").context["charted"]) == {"imbalance", "bytes"}


def test_a_latency_that_a_plan_changed_was_not_approved(
    viewing: Client, ledger: LedgerEntry
) -> None:
    effects = Assessment.of({"latency_ms": 900.0}, {"latency_ms": 100.0}, {}, {}).to_json()
    measured = {"latency_ms": 100.0}
    LedgerEntry.objects.update(
        assessment=effects, approved={"latency_ms": 900.0}, measured=measured
    )
    (row,) = viewing.get(f"{BASE}/ledger/").context["rows"]
    assert (row["first"].measure, row["main"]) == ("latency_ms", None)


def test_a_proof_has_no_column_without_a_value(viewing: Client, ledger: LedgerEntry) -> None:
    assert set(_proof(viewing, ledger)["columns"]) == {
        "before", "measured", "approved", "expected", "error",
    }  # fmt: skip
    LedgerEntry.objects.update(expected=ledger.approved, without={"imbalance": 0.3})
    columns = _proof(viewing, ledger)["columns"]
    assert ("without" in columns, "expected" in columns) == (True, False)
    for error, text in ((0.0001, "30 %"), (0.01, "30 % ± 1 %")):
        LedgerEntry.objects.update(without_error={"imbalance": error})
        (row,) = (row for row in _proof(viewing, ledger)["rows"] if row["name"] == "imbalance")
        assert row["without"] == text, "an interval that rounds to nothing is not shown"


def _proof(client: Client, ledger: LedgerEntry) -> dict[str, Any]:
    page = client.get(f"{BASE}/proposals/{ledger.proposal_id}/")
    return dict(page.context["proof"])


def test_every_measure_of_every_planner_has_its_row(viewing: Client, ledger: LedgerEntry) -> None:
    """On the page of the proposal and in the ledger."""
    assert set(LEDGER) == set(FLOORS)
    values = dict.fromkeys(LEDGER, 0.25)
    LedgerEntry.objects.update(approved=values, expected=values, measured=values, without=values)
    assert all(title in text(viewing, "/ledger/") for title, *_ in LEDGER.values())
    page = text(viewing, f"/proposals/{ledger.proposal_id}/")
    assert "Largest skew of a query" in page
