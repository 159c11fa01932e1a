"""The headline of a proposal's page in every state."""

from typing import Any

import pytest

from controlplane.models import Cluster, LedgerEntry, Proposal
from controlplane.policies.assessment import Assessment
from controlplane.policies.gate import BetterParameter, Change, GateCode, Judgement, NextStep
from controlplane.policies.settings import PolicySettings
from dashboard.frame.headline import Headline
from dashboard.proposals.list_rows import list_row
from dashboard.proposals.page_headline import page_headline

pytestmark = pytest.mark.nightly("pages")

PLAN = Headline("Imbalance 46 → 9 %", "Takes at least 3 s in 2 steps.", "good")
COUNTS = "12 applied"
# Where the next step is done, within the pages of the cluster.
LINKS = {
    NextStep.CAPACITY: "#nodes", NextStep.EXCLUSIONS: "policy/#exclusions",
    NextStep.EXPLAIN: "?explain=measure%3Aimbalance",
}  # fmt: skip


def known(plan: Headline | None = PLAN, **others: Any) -> dict[str, Any]:
    return {"waits": "", "plan_headline": plan, **others}


def of(state: str, context: dict[str, Any] | None = None, **fields: Any) -> Headline:
    return page_headline(Proposal(state=state, **fields), context or known())


def proof(before: float = 0.4, measured: float = 0.1, limit: float = 0.2) -> dict[str, Any]:
    assessment = Assessment.of(
        {"imbalance": before}, {"imbalance": measured}, {}, {"imbalance": limit}
    )
    return {"entry": LedgerEntry(samples=30), "assessment": assessment}


@pytest.mark.parametrize("state", sorted({*Proposal.State} - {"no better plan"}))
def test_every_state_has_a_sentence(state: str) -> None:
    assert of(state, error="no node is active").what


def test_a_computation_has_its_progress_and_why_it_waits() -> None:
    headline = of("computing", known(None, waits="another plan is computed"), progress=0.42)
    assert (headline.grade, headline.icon) == ("info", "clock")
    assert "42 %" in headline.what
    assert "another plan is computed" in headline.why


def test_without_a_plan_only_a_failure_is_bad() -> None:
    failed = of("failed", known(None), error="the planner has no memory")
    assert (failed.grade, failed.why) == ("bad", "the planner has no memory")
    assert of("rejected", known(None)).grade == ""


def test_a_plan_that_waits_has_the_level_of_the_policy() -> None:
    assert of("ready") == PLAN
    assert of("rejected").grade == ""


def test_an_approved_plan_has_the_reason_why_it_waits() -> None:
    waiting = of("approved", known(waits="a blackout lasts until 10:00"))
    assert waiting.why.startswith(PLAN.why)
    assert "a blackout lasts until 10:00" in waiting.why
    assert of("approved").why not in (PLAN.why, waiting.why)


def test_an_open_execution_goes_before_the_plan() -> None:
    running = Headline("3 of 12 actions finished", grade="info")
    assert of("executing", known(running_headline=running, counts=COUNTS)) is running


def test_a_finished_execution_has_its_counts_until_it_is_measured() -> None:
    assert of("done", known(counts=COUNTS)).what.endswith(COUNTS)


@pytest.mark.parametrize(
    ("before", "measured", "grade"),
    [(0.4, 0.1, "good"), (0.1, 0.15, "warn"), (0.1, 0.4, "bad"), (0.1, 0.1, "warn")],
)
def test_a_proof_has_the_level_of_its_assessment(
    before: float, measured: float, grade: str
) -> None:
    headline = of("done", known(counts=COUNTS, proof=proof(before, measured)))
    assert headline.grade == grade
    assert headline.why.startswith(COUNTS)


def test_a_proof_names_the_costs_that_were_exceeded() -> None:
    context = known(counts=COUNTS, proof=proof())
    entry = context["proof"]["entry"]
    entry.approved = {"bytes": 82_300, "pause_ms": 2000.0}
    entry.measured = {"bytes": 122_000, "pause_ms": 1000.0}
    what = of("done", context).what
    assert what.endswith("state moved 82.3 \N{RIGHTWARDS ARROW} 122 kB, 48 % more than approved")
    assert "pause" not in what


def test_a_rollback_has_no_praise_and_says_who_did_it() -> None:
    context = known(counts=COUNTS, proof=proof())
    for headline in (
        of("rolled back", context, decided_by="boss"),
        of("rolled back", known(counts=COUNTS), decided_by="boss"),
    ):
        assert (headline.grade, headline.icon) == ("", "undo")
        assert "boss" in headline.what


def test_a_proof_without_samples_has_no_values() -> None:
    empty = {"entry": LedgerEntry(samples=0), "assessment": Assessment(())}
    assert of("done", known(counts=COUNTS, proof=empty)).grade == ""


@pytest.mark.parametrize("step", list(NextStep))
@pytest.mark.parametrize("code", list(GateCode))
def test_no_better_plan_has_what_was_reached_and_what_would_help(
    code: GateCode, step: NextStep
) -> None:
    better = BetterParameter("nu", 0.2, "imbalance", 0.1) if step is NextStep.PARAMETER else None
    change = Change("imbalance", 0.4, 0.5, 0.2)
    row = Judgement(code, (change,), step, 0, better, 12.5).to_json()
    headline = of("no better plan", judgement=row, cluster=Cluster(slug="sf"))
    assert headline.grade == ("" if step is NextStep.NOTHING else "warn")
    assert "40 \N{RIGHTWARDS ARROW} 50 %" in headline.why
    assert headline.link == f"/clusters/sf/{LINKS.get(step, '')}", "a dead end has a next action"


def test_a_request_without_an_exceeded_limit_needs_no_move() -> None:
    row = Judgement(GateCode.EMPTY, (), NextStep.NOTHING).to_json()
    headline = of("no better plan", judgement=row, cluster=Cluster(slug="sf"))
    assert headline.what == "Nothing needs to move"
    assert "No limit is exceeded" in headline.why


def test_a_better_plan_at_a_wider_limit_leads_to_the_policy() -> None:
    better = BetterParameter("watch_imbalance", 0.4, "replication_factor", 1.61)
    row = Judgement(GateCode.EMPTY, (), NextStep.PARAMETER, 0, better).to_json()
    headline = of("no better plan", judgement=row, cluster=Cluster(slug="sf"))
    assert "at a limit of the imbalance of 40 %: replication factor 1.61" in headline.why
    assert headline.link.endswith("/policy/#section-watch")


def test_a_stale_plan_has_what_drifted() -> None:
    drift = {"exceeded": ["nodes 3 are no longer active", "60 % of the queries ended"]}
    headline = of("stale", drift=drift)
    assert headline.grade == "bad"
    assert "Nodes 3 are no longer active. 60 % of the queries ended" in headline.what
    executed = of("stale", known(counts=COUNTS), error="the cluster was changed")
    assert "The cluster was changed" in executed.what
    assert executed.why != headline.why


def test_a_stale_plan_that_was_measured_has_both() -> None:
    context = known(counts=COUNTS, proof=proof())
    assert "the cluster was changed" in of("stale", context, error="the cluster was changed").why


def test_a_failed_execution_has_its_error_and_what_was_applied() -> None:
    headline = of("failed", known(counts=COUNTS), error="node 3 is lost")
    assert (headline.grade, headline.why) == ("bad", COUNTS)
    assert "node 3 is lost" in headline.what


@pytest.mark.parametrize("code", GateCode)
def test_the_list_says_why_a_plan_is_not_offered_and_promises_no_gain(code: GateCode) -> None:
    values = {"imbalance": 1.45, "fullest": 0.9, "traffic": 5.0, "replication_factor": 1.5}
    proposal = Proposal(
        planner="placement", state="no better plan", cluster=Cluster(slug="sf"),
        before=values, after=values | {"imbalance": 0},
        judgement=Judgement(code, (), NextStep.NOTHING).to_json(),
    )  # fmt: skip
    row = list_row(proposal, PolicySettings())
    assert row["outcome_words"]
    assert (row["gain"], row["measure"]) == ("", "")
    proposal.judgement = {}
    assert "145" in list_row(proposal, PolicySettings())["gain"]
