"""Decision of a watch loop on its reading, a pure function."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from controlplane.policies.settings import PolicySettings
from controlplane.telemetry.arrivals.catching_up import CatchingUp, oldest_s
from controlplane.watch.codes import is_calm
from controlplane.watch.reading import SHARE, LoopReading

# Loops are evaluated at this distance.
PERIOD: Final = timedelta(seconds=10)


@dataclass(frozen=True)
class Situation:
    """The state of a cluster that a decision depends on, besides the reading.

    `age_s`: of the newest sample, None before the first one and of an idle cluster. `running`: the
    approved or executing proposal; `waiting`: a computing or ready proposal of the loops, requested
    at `waiting_since`.
    `catching_up`: why the last minute shows an outage and not the load, None if it shows the load;
    `is_new`: it was measured for less than a minute.
    `executed_at`: the end of the last execution; `quiet_since`: the later one of it and of the last
    request of the loops. `blackout`: the reason of the blackout that ends at `blackout_until`.
    """

    runs: bool
    age_s: float | None
    trigger_ms: int
    running: int | None = None
    waiting: int | None = None
    waiting_since: datetime | None = None
    quiet_since: datetime | None = None
    executed_at: datetime | None = None
    blackout: str = ""
    blackout_until: datetime | None = None
    catching_up: CatchingUp | None = None
    is_new: bool = False

    def cooldown_end(self, policy: PolicySettings) -> datetime | None:
        """Return the end of the cool-down after the last plan, None without one."""
        if self.quiet_since is None:
            return None
        return self.quiet_since + timedelta(seconds=policy.cooldown_s)

    def next_check(self, code: str, last_at: datetime, policy: PolicySettings) -> datetime:
        """Return when a loop that decided `code` at `last_at` may decide again."""
        ends = {"cooldown": self.cooldown_end(policy), "blackout": self.blackout_until}
        return max(ends.get(code) or last_at, last_at + PERIOD)


@dataclass(frozen=True)
class LoopDecision:
    """The decision of a loop: code, number, limit and their unit.

    `proposal`: the proposal that prevents another one, if any.
    """

    code: str
    number: float | None
    limit: float | None
    text: str
    unit: str = SHARE
    proposal: int | None = None


def decide(
    reading: LoopReading, situation: Situation, policy: PolicySettings, last: str, now: datetime
) -> LoopDecision:
    """Return the decision on a reading; "asked" means to request a plan.

    `last`: the code of the last decision. A problem starts above the limit, and ends by the
    dead band below it.
    """
    if policy.watch == "off":
        return LoopDecision("off", None, None, "The policy switches the monitors off")
    unable = unobservable(situation)
    if unable is not None:
        return unable
    if reading.number is None:
        return LoopDecision("no_data", None, reading.limit, reading.text)
    if not reading.trouble:
        holds = reading.near and not is_calm(last)
        return _of(reading, "dead_band" if holds else reading.calm)
    if reading.blocked:
        return _of(reading, reading.blocked)
    return _blocked(reading, situation, policy, now) or _of(reading, "asked")


def unobservable(situation: Situation) -> LoopDecision | None:
    """Return the outcome if the cluster cannot be observed, else None."""
    if not situation.runs:
        return LoopDecision("not_running", None, None, "The cluster is stopped")
    oldest = oldest_s(situation.trigger_ms)
    if situation.age_s is None:
        return LoopDecision(
            "no_data", None, None, "The cluster has reported no sample, or receives no new records"
        )
    if situation.age_s > oldest:
        text = f"The newest sample is {situation.age_s:,.0f} s old, {oldest:,.0f} s is the limit"
        return LoopDecision("data_too_old", None, None, text)
    if situation.catching_up is not None:
        return _catching_up(situation.catching_up)
    if situation.is_new:
        return LoopDecision("no_data", None, None, "Measured for less than a minute")
    return None


def _catching_up(known: CatchingUp) -> LoopDecision:
    """Return the outcome of a cluster whose measures are those of an outage."""
    if known.outage:
        text = f"No batch ran for {known.seconds:,.0f} s within the last minute"
    else:
        text = f"A backlog of {known.seconds:,.0f} s of input was worked off in the last minute"
    return LoopDecision("catching_up", None, None, text)


def _blocked(
    reading: LoopReading, situation: Situation, policy: PolicySettings, now: datetime
) -> LoopDecision | None:
    """Return the outcome if no plan may be requested now, else None."""
    proposal = situation.running or situation.waiting
    if situation.running is not None:
        code, why = "execution_running", f"proposal {situation.running} is being executed"
    elif situation.blackout_until is not None:
        left = (situation.blackout_until - now).total_seconds()
        why = f"blackout for another {_duration_text(left)}: {situation.blackout}"
        code, proposal = "blackout", None
    elif situation.waiting is not None:
        waited = (now - (situation.waiting_since or now)).total_seconds()
        why = f"proposal {situation.waiting} has waited {_duration_text(waited)}"
        code = "proposal_waiting"
    elif (end := situation.cooldown_end(policy)) is not None and end > now:
        quiet = policy.cooldown_s - (end - now).total_seconds()
        why = f"the last plan was {_duration_text(quiet)} ago"
        why += f", the cool-down is {_duration_text(policy.cooldown_s)}"
        code = "cooldown"
    else:
        return None
    return replace(_of(reading, code), text=f"{reading.text}; {why}", proposal=proposal)


def _of(reading: LoopReading, code: str) -> LoopDecision:
    return LoopDecision(code, reading.number, reading.limit, reading.text, reading.unit)


def _duration_text(seconds: float) -> str:
    """Return a duration in its largest fitting unit."""
    seconds = max(0.0, seconds)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            count = seconds / size
            text = f"{count:.0f}" if count >= 10 else f"{count:.1f}".removesuffix(".0")  # noqa: PLR2004
            return f"{text} {unit}"
    return f"{seconds:.0f} s"
