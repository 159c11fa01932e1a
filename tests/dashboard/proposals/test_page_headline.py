"""The headline of a proposal's page in every state."""

from typing import Any

import pytest

from controlplane.models import LedgerEntry, Proposal
from controlplane.numbers import MISSING
from dashboard.frame.headline import Headline
from dashboard.proposals.measure_rows import ProofRow
from dashboard.proposals.page_headline import Known, page_headline

pytestmark = pytest.mark.nightly("pages")

PLAN = Headline("Imbalance 46 → 9 %", "Takes at least 3 s in 2 steps.", "good")
COUNTS = "12 applied"


def of(state: str, known: Known | None = None, **fields: Any) -> Headline:
    return page_headline(Proposal(state=state, **fields), known or Known(plan=PLAN))


def proof(samples: int, without: str = "44 %") -> dict[str, Any]:
    row = ProofRow(
        title="Imbalance", before="46 %", approved="9 %", expected="9 %", measured="10 %",
        error="11 %", without=without, without_error="± 2 %", is_close=True, is_better=False,
    )  # fmt: skip
    return {"main": row, "entry": LedgerEntry(samples=samples), "grade": "good"}


@pytest.mark.parametrize("state", [str(state) for state in Proposal.State])
def test_every_state_has_a_sentence(state: str) -> None:
    assert of(state, error="no node is active").what


def test_a_computation_has_its_progress_and_why_it_waits() -> None:
    headline = of("computing", Known(waits="another plan is computed"), progress=0.42)
    assert (headline.grade, headline.icon) == ("info", "clock")
    assert "42 %" in headline.what
    assert "another plan is computed" in headline.why


def test_without_a_plan_only_a_failure_is_bad() -> None:
    failed = of("failed", Known(), error="the planner has no memory")
    assert (failed.grade, failed.why) == ("bad", "the planner has no memory")
    assert of("rejected", Known()).grade == ""


def test_a_plan_that_waits_has_the_level_of_the_policy() -> None:
    assert of("ready") == PLAN
    assert of("rejected").grade == ""


def test_an_approved_plan_has_the_reason_why_it_waits() -> None:
    waiting = of("approved", Known(waits="a blackout lasts until 10:00", plan=PLAN))
    assert waiting.why.startswith(PLAN.why)
    assert "a blackout lasts until 10:00" in waiting.why
    assert of("approved").why not in (PLAN.why, waiting.why)


def test_an_open_execution_goes_before_the_plan() -> None:
    running = Headline("3 of 12 actions finished", grade="info")
    assert of("executing", Known(plan=PLAN, running=running, counts=COUNTS)) is running


def test_a_finished_execution_has_its_counts_until_it_is_measured() -> None:
    assert of("done", Known(plan=PLAN, counts=COUNTS)).what == COUNTS


def test_a_proof_has_the_measured_and_the_approved_value() -> None:
    headline = of("done", Known(plan=PLAN, counts=COUNTS, proof=proof(30)))
    assert headline.grade == "good"
    assert all(value in headline.what for value in ("46 %", "10 %", "9 %", "44 % ± 2 %"))
    assert headline.why.startswith(COUNTS)
    unknown = of("done", Known(plan=PLAN, counts=COUNTS, proof=proof(30, MISSING)))
    assert "±" not in unknown.what


def test_a_proof_without_samples_has_no_values() -> None:
    headline = of("done", Known(plan=PLAN, counts=COUNTS, proof=proof(0)))
    assert headline.grade == ""
    assert "46 %" not in headline.what


def test_a_stale_plan_has_what_drifted() -> None:
    drift = {"exceeded": ["nodes 3 are no longer active", "60 % of the queries ended"]}
    headline = of("stale", drift=drift)
    assert headline.grade == "bad"
    assert "Nodes 3 are no longer active. 60 % of the queries ended" in headline.what
    executed = of("stale", Known(plan=PLAN, counts=COUNTS), error="the cluster was changed")
    assert "The cluster was changed" in executed.what
    assert executed.why != headline.why


def test_a_stale_plan_that_was_measured_has_both() -> None:
    known = Known(plan=PLAN, counts=COUNTS, proof=proof(30))
    assert "the cluster was changed" in of("stale", known, error="the cluster was changed").why


def test_a_failed_execution_has_its_error_and_what_was_applied() -> None:
    headline = of("failed", Known(plan=PLAN, counts=COUNTS), error="node 3 is lost")
    assert (headline.grade, headline.why) == ("bad", COUNTS)
    assert "node 3 is lost" in headline.what
