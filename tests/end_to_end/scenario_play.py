"""A scenario through pages and API of a whole Weir: alert, recommended plan, approval, verdict."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from playwright.sync_api import Page

from controlplane.clusters.scenarios import ScenarioKind
from tests.end_to_end.mixed_plan import post, read, wait_for

# A state that takes longer will not come; a busy machine needs most of it.
PATIENCE_S: Final = 900
# The part of the promised gain by which the measured one may differ.
RANGE: Final = 0.25
# Alerts and plans follow each other quickly, yet after what is measured of the last plan, and when
# most of the minute that a plan is computed from is of the scenario.
QUICK: Final = {"alert_hold_s": 45, "cooldown_s": 30}
AS_BEFORE: Final = {"alert_hold_s": 60, "cooldown_s": 60}
# The states of a plan that was not approved; the loops replace it by another one.
REFUSED: Final = ("ready", "stale", "superseded")
# The measure whose change a plan of each planner promises.
PROMISED: Final = {
    "placement": "imbalance", "migration": "imbalance", "partitioning": "skew",
    "admission": "split_overload", "shedding": "fullest",
}  # fmt: skip


def until(page: Page, find: Callable[[], Any], reached: Callable[[Any], bool] = bool) -> Any:
    """Return what is found as soon as it is reached."""
    deadline = time.monotonic() + PATIENCE_S
    while not reached(found := find()):
        assert time.monotonic() < deadline, (found, read(page, "decisions")["decisions"][:12])
        page.wait_for_timeout(1000)
    return found


def firing(page: Page) -> dict[str, int]:
    """Return the ids of the alerts that fire, by subject."""
    rows = page.request.get("/api/v1/alerts?cluster=sf&state=firing").json()["alerts"]
    return {row["subject"]: row["id"] for row in rows}


def ready(page: Page, planner: str = "") -> list[Any]:
    """Return the proposals that wait for approval, of one planner or of all."""
    rows = read(page, "proposals?state=ready")["proposals"]
    return [row for row in rows if planner in ("", row["planner"])]


def approve(page: Page, proposal: int) -> bool:
    """Approve a plan and wait for its end; False if it has just lost its gain."""
    row = read(page, f"proposals/{proposal}")
    if row["lock"] is None:
        with suppress(AssertionError):
            given = {"seal": row["seal"], "reason": "it ends the alert"}
            post(page, f"proposals/{proposal}/approve", given)
    is_approved = read(page, f"proposals/{proposal}")["state"] not in REFUSED
    if is_approved:
        wait_for(page, proposal, "done")
    return is_approved


def approved(page: Page, planner: str) -> Any:
    """Approve a plan of a planner that is recommended, and return it; None if none can be."""
    return next((row for row in ready(page, planner) if approve(page, row["id"])), None)


def settle(page: Page, subjects: Iterable[str]) -> None:
    """Approve the plans that can be, until no alert of these subjects fires."""

    def troubled() -> set[str]:
        found = firing(page).keys() & set(subjects)
        for row in ready(page) if found else ():
            approve(page, row["id"])
        return found

    until(page, troubled, lambda found: not found)


def play(page: Page, kind: ScenarioKind, *, to_calm: bool = True) -> Mapping[str, Any]:
    """Play a scenario to its verdict; return the entry of the ledger.

    `to_calm`: approve the further plans that are recommended until its alerts are gone.
    """
    page.goto("/clusters/sf/")
    page.locator("summary", has_text="Scenarios").click()
    page.get_by_role("button", name=f"Start scenario {kind.title}", exact=True).click()
    page.locator("section.scenarios").get_by_text(kind.title).wait_for()
    (running,) = [r for r in read(page, "scenarios")["scenarios"] if r["ended_at"] is None]
    try:
        until(page, lambda: firing(page).keys() & set(kind.alerts))
        plan = until(page, lambda: approved(page, kind.planner))
        entries = until(
            page, lambda: read(page, "ledger"), lambda found: entry_of(found, plan["id"])
        )
        if to_calm:
            settle(page, kind.alerts)
        return dict(entry_of(entries, plan["id"]))
    finally:
        post(page, f"scenarios/{running['id']}/end", {})
        if read(page, "shedding")["armed"]:
            post(page, "shedding/disarm", {"reason": "the scenario is over"})


def entry_of(ledger: Mapping[str, Any], proposal: int) -> Any:
    return next((row for row in ledger["entries"] if row["proposal"] == proposal), None)


def is_measured(page: Page) -> bool:
    """Return whether the watch loops decide: the cluster is measured for a minute."""
    newest = {row["loop"]: row["code"] for row in reversed(read(page, "decisions")["decisions"])}
    return bool(newest.get("imbalance", "no_data") != "no_data")


def keeps_its_promise(kind: ScenarioKind, entry: Mapping[str, Any]) -> bool:
    """Return whether the plan helped, and its measured gain is near the promised one."""
    measure = PROMISED[kind.planner]
    effects = {row["measure"]: row for row in entry["assessment"]}
    effect = effects[measure]
    # A ladder promises loads within the limit, whatever it has to drop for that.
    approved = effect["limit"] if kind.planner == "shedding" else entry["approved"][measure]
    promised, gained = (abs(value - effect["before"]) for value in (approved, effect["measured"]))
    helped = any(row["effect"] == "helped" for row in effects.values())
    return helped and abs(gained - promised) <= RANGE * max(promised, effect["limit"] or 0.0)
