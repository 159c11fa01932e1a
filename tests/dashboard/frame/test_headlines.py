"""Headlines of pages: what is wrong comes first, with its grade."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from controlplane.models import ApiToken, Comparison, Webhook
from controlplane.proposals.comparison_table import Candidate, Compared
from dashboard.frame import headlines
from dashboard.frame.headlines import BAD, GOOD, WARN

pytestmark = pytest.mark.nightly("pages")

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def token(name: str, days: float | None) -> ApiToken:
    row = ApiToken(name=name)
    if days is not None:
        row.expires_at = NOW + timedelta(days=days)
    return row


@pytest.mark.parametrize(
    ("days", "grade"), [((), ""), ((30, 90), GOOD), ((3, 90), WARN), ((-1,), BAD), ((None,), WARN)]
)
def test_tokens_that_expire_are_named(days: tuple[float | None, ...], grade: str) -> None:
    rows = [token(f"token {number}", left) for number, left in enumerate(days)]
    headline = headlines.tokens_headline(rows, "", NOW)
    assert headline.grade == grade
    if grade in (BAD, GOOD) or days[:1] == (3,):
        assert "token 0" in headline.why


def hook(state: str, failures: int = 0, waiting: int = 0) -> dict[str, Any]:
    webhook = Webhook(name="On call", failures=failures)
    return {"hook": webhook, "state": state, "waiting": waiting, "last": None}


def test_webhooks_that_do_not_answer_come_first() -> None:
    assert headlines.webhooks_headline([]).grade == ""
    assert headlines.webhooks_headline([hook("on")]).grade == GOOD
    assert headlines.webhooks_headline([hook("on"), hook("off")]).grade == WARN
    failing = headlines.webhooks_headline([hook("off"), hook("not answering", failures=4)])
    assert failing.grade == BAD
    assert "On call failed 4 times" in failing.why
    silent = hook("not answering", failures=4)
    assert headlines.webhook_headline(silent).grade == BAD
    refused = headlines.webhook_headline(silent | {"error": "HTTP 503"})
    assert "HTTP 503" in refused.why


@pytest.mark.parametrize(
    ("states", "what", "why"),
    [
        (
            ("ready", "no better plan"),
            "Proposal 1 is the only usable plan: imbalance 17 %",
            "1 of 1",
        ),
        (("ready", "ready"), "Proposal 2 balances best of the usable plans: imbalance 7", "2 of 2"),
    ],
)
def test_the_best_plan_of_a_comparison_is_one_that_can_be_approved(
    states: tuple[str, str], what: str, why: str
) -> None:
    rows = [
        Candidate(
            number, "placement", "mms", {}, {}, state, 1.0, "", "", bytes=size, imbalance=imbalance,
            pareto=state == "ready",
        )
        for number, state, size, imbalance in zip(
            (1, 2), states, (21_400, 150_000), (0.17, 0.072), strict=True
        )
    ]  # fmt: skip
    headline = headlines.comparison_headline(Compared(Comparison(), rows, 0.18, 1.66))
    assert headline.what.startswith(what)
    assert headline.why.startswith(f"{why} usable plan")
    assert ("no better plan" in headline.why) == ("no better plan" in states)


def record(error: float | None, *, used: bool = True) -> dict[str, Any]:
    return {
        "planner": "placement", "record": SimpleNamespace(median_error=error, runs=3),
        "error": error, "limit": 0.25, "is_used": used, "is_good": error is None or error <= 0.25,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("error", "used", "grade"),
    [(None, True, ""), (0.1, True, GOOD), (0.4, True, WARN), (0.4, False, "")],
)
def test_the_record_of_planners_is_graded_by_the_policy(
    error: float | None, used: bool, grade: str
) -> None:
    assert headlines.ledger_headline([record(error, used=used)]).grade == grade
