"""Description of a policy in sentences."""

from collections.abc import Sequence
from typing import Final

from controlplane.numbers import percent, size
from controlplane.planning.adapters import adapters
from controlplane.policies.settings import DAY_NAMES, PolicySettings

_WATCHING: Final = {
    "off": "The monitors are off.",
    "recommend": "The monitors recommend plans; people decide.",
    "act": "The monitors apply the plans that this allows, and recommend the others.",
}


def summary(policy: PolicySettings) -> str:
    """Return what is approved automatically, in a few sentences."""
    known = adapters()
    # Plans of monitors that only recommend wait for people, whatever their kind.
    allowed = policy.auto_kinds if policy.watch == "act" or policy.auto_asked else []
    kinds = [known[kind].effect for kind in allowed if kind in known]
    moving = [adapter for adapter in known.values() if adapter.moves_state]
    lines = ["New queries are placed at once."]
    unless = " for every requester" if policy.auto_asked else ", unless a person requested them"
    if policy.watch != "act":
        unless = " when people request them"
    if kinds:
        lines.append(f"{_joined(kinds).capitalize()} apply automatically{_when(policy)}{unless}.")
    if any(adapter.name in allowed for adapter in moving):
        lines.append(f"Plans that move state need {_bounds(policy)}.")
    others = [adapter for adapter in known.values() if not adapter.is_automatic]
    rest = [adapter.effect for adapter in others if adapter.name not in allowed]
    if rest:
        other = " other than the requester" if policy.four_eyes else ""
        lines.append(f"{_joined(rest).capitalize()} wait for an {policy.approvers}{other}.")
    lines.append(_WATCHING[policy.watch])
    return " ".join(lines)


def _when(policy: PolicySettings) -> str:
    text = f" on {days_text(policy.auto_days)}" if policy.auto_days else ""
    if policy.auto_from is not None and policy.auto_until is not None:
        text += f" from {policy.auto_from:%H:%M} to {policy.auto_until:%H:%M} UTC"
    return text


def _bounds(policy: PolicySettings) -> str:
    text = (
        f"at most {policy.auto_moves:,} moves and {size(policy.auto_bytes)},"
        f" and a gain of at least {percent(policy.auto_gain)}"
    )
    if policy.auto_record:
        text += (
            f", and {policy.auto_record_runs} executed plans of their planner"
            f" with a median error of at most {percent(policy.auto_record_error)}"
        )
    return text


def days_text(days: Sequence[int]) -> str:
    """Return days of the week, with consecutive days as a range."""
    ranges: list[list[int]] = []
    for day in sorted(days):
        if ranges and ranges[-1][1] == day - 1:
            ranges[-1][1] = day
        else:
            ranges.append([day, day])
    return _joined([_range_text(begin, end) for begin, end in ranges])


def _range_text(begin: int, end: int) -> str:
    if begin == end:
        return DAY_NAMES[begin]
    joint = " and " if end == begin + 1 else " to "
    return f"{DAY_NAMES[begin]}{joint}{DAY_NAMES[end]}"


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
