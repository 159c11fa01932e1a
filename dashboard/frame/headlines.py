"""Headlines of pages without measures of a cluster: one sentence, and its reason or next action."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from controlplane.health.liveness.status import SiteStatus
from controlplane.integrations.attached_list import JobRow
from controlplane.models import ApiToken
from controlplane.numbers import counted, lowered, percent, size
from controlplane.planning.sources import planner_title
from controlplane.plans.proposal_states import State
from controlplane.proposals.comparison_table import Compared
from dashboard.frame.headline import Headline

GOOD: Final = "good"
WARN: Final = "warn"
BAD: Final = "bad"
# A script whose token expires within this time needs a new one soon.
SOON: Final = timedelta(days=7)


def tokens_headline(tokens: Sequence[ApiToken], user: str, now: datetime | None = None) -> Headline:
    """Return how many tokens a user has, and which expires next; `user`: "" for the actor."""
    now = now or timezone.now()
    owner = f"{user} has" if user else "You have"
    if not tokens:
        return Headline(f"{owner} no token", "Scripts use the API with tokens of their users.")
    limited = [token for token in tokens if token.expires_at is not None]
    what = f"{owner} {counted(len(tokens), 'tokens')}"
    if not limited:
        return Headline(what, "They never expire: revoke those that no script uses.", WARN)
    first = min(limited, key=lambda token: token.expires_at or now)
    assert first.expires_at is not None
    if first.expires_at <= now:
        return Headline(what, f"Token {first.name} has expired: its script is rejected.", BAD)
    why = f"The next one to expire is {first.name}, on {first.expires_at:%Y-%m-%d}."
    return Headline(what, why, WARN if first.expires_at < now + SOON else GOOD)


def grants_headline(total: int, others: int) -> Headline:
    """Return how many grants there are; `others`: users with a role on all clusters without one."""
    why = "The highest role of a user counts; each role includes the roles before it."
    if others:
        why = f"{counted(others, 'users')} have a role on all clusters without a grant. {why}"
    return Headline(counted(total, "grants") if total else "No grant yet", why)


def webhooks_headline(rows: Sequence[Mapping[str, Any]]) -> Headline:
    """Return which webhooks do not answer; `rows`: as `webhooks.webhook_form` returns them."""
    if not rows:
        return Headline("No webhook receives events", "People have to watch a page instead.")
    failing = [row["hook"] for row in rows if row["state"] == "not answering"]
    if failing:
        what = f"{len(failing)} of {counted(len(rows), 'webhooks')} does not answer"
        if len(failing) > 1:
            what = what.replace("does", "do")
        worst = max(failing, key=lambda hook: hook.failures)
        why = (
            f"{worst.name} failed {worst.failures} times in succession; Weir repeats its messages."
        )
        return Headline(what, why, BAD)
    off = sum(row["state"] == "off" for row in rows)
    if off:
        what = f"{off} of {counted(len(rows), 'webhooks')} is off"
        return Headline(what, "Its messages wait until it is switched on.", WARN)
    waiting = sum(row["waiting"] for row in rows)
    what = f"All {len(rows)} webhooks answer" if len(rows) > 1 else "The webhook answers"
    return Headline(what, f"{counted(waiting, 'messages')} waiting.", GOOD)


def webhook_headline(row: Mapping[str, Any]) -> Headline:
    """Return whether a webhook answers."""
    hook, last = row["hook"], row["last"]
    if row["state"] == "off":
        return Headline(f"{hook.name} is off", "Its messages wait until it is on.", WARN)
    if row["state"] == "not answering":
        error = row.get("error")
        why = f"Newest failure: {error}." if error else "It sent no response, or 5xx."
        return Headline(f"{hook.name} failed {hook.failures} times in succession", why, BAD)
    if last is None or last.state == "waiting":
        return Headline("No message was answered yet", "Send a test to verify the receiver.")
    return Headline(f"{hook.name} answers", f"Newest message: {last.kind}, {last.state}.", GOOD)


def system_headline(status: SiteStatus) -> Headline:
    """Return whether all processes of Weir run, and what the silent ones stop."""
    problems = status.problems
    if problems:
        more = counted(len(problems) - 1, "further problems") + " below." if problems[1:] else ""
        return Headline(f"{problems[0]}", more, BAD)
    silent = [row for row in status.processes if row.state == "silent"]
    if silent:
        return Headline(f"{silent[0].text}", "It is not essential.", WARN)
    return Headline(
        f"All {len(status.processes)} processes of Weir run", "No task is overdue.", GOOD
    )


def attached_headline(rows: Sequence[JobRow], total: int) -> Headline:
    """Return which attached jobs do not report or failed."""
    if not rows:
        return Headline("No job is attached", "Two lines in a PySpark job attach it.")
    lost = [row for row in rows if row.state == "lost"]
    failed = [run for row in rows for run in row.runs if run.state == "failed"]
    if lost:
        what = f"{lost[0].job.name} does not report"
        return Headline(what, "It was stopped, or cannot reach Weir.", BAD)
    if failed:
        return Headline(f"Query {failed[0].query.title} failed", failed[0].brief, BAD)
    return Headline(
        f"{counted(total, 'attached jobs')}, each reports",
        "Weir displays their progress and changes nothing.", GOOD,
    )  # fmt: skip


def comparison_headline(table: Compared) -> Headline:
    """Return the plan of a comparison with the lowest imbalance, or the progress."""
    plans = [row for row in table.candidates if row.has_plan and row.imbalance is not None]
    if table.computing:
        done = len(table.candidates) - table.computing
        return Headline(f"{done} of {counted(len(table.candidates), 'plans')} computed")
    if not plans:
        return Headline("No planner found a plan", "The reasons are in the table.", WARN)
    better = [row for row in plans if row.pareto]
    if not better:
        return Headline("No plan is better than the present placement", "See the table.", WARN)
    best = min(better, key=lambda row: (row.imbalance, row.bytes or 0))
    usable = [row for row in plans if row.state != State.NO_BETTER_PLAN]
    rank = "balances best of the usable plans" if usable[1:] else "is the only usable plan"
    what = (
        f"Proposal {best.proposal} {rank}: imbalance {percent(best.imbalance)},"
        f" now {percent(table.imbalance)}, for {size(best.bytes)} of moved state"
    )
    why = f"{len(better)} of {counted(len(usable), 'usable plans')} in the best trade-off."
    if usable != plans:
        unusable = counted(len(plans) - len(usable), "plans")
        why = f"{why} {unusable} without a gain, or above a limit: no better plan."
    if best.state == "stale":
        why = f"{why} The cluster has changed since: compare again."
    return Headline(what, why)


def ledger_headline(records: Sequence[Mapping[str, Any]]) -> Headline:
    """Return whether the predictions of planners keep the limit of the policy."""
    known = [row for row in records if row["record"].median_error is not None]
    if not known:
        return Headline(
            "No plan was executed and measured yet",
            "An entry is written thirty batches after the end of an execution, or after five"
            " minutes.",
        )
    worst = max(known, key=lambda row: row["record"].median_error)
    runs = worst["record"].runs
    title = lowered(planner_title(worst["planner"]))
    what = f"Predicted effects of plans that {title} are off by {worst['error']}"
    why = (
        "Mean over imbalance, fullest node and replication factor,"
        f" median over {counted(runs, 'executed plans')}"
    )
    if not worst["is_used"]:
        return Headline(what, f"{why}; the policy sets no limit for auto-approval.")
    limit = percent(worst["limit"])
    if worst["is_good"]:
        return Headline(what, f"{why}, within the limit of {limit}.", GOOD)
    return Headline(what, f"{why}, above {limit}: auto-approval stops.", WARN)
