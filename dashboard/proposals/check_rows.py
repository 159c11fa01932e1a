"""Rows of the policy's checks: titles, numbers with their limits."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from controlplane.numbers import seconds, value_text
from controlplane.proposals.checks import Check, CheckCode

# Title if it passes, title if it does not, and the words before the number.
_TITLES: Final[Mapping[CheckCode, tuple[str, str, str]]] = {
    CheckCode.LIMIT: ("within its limit after the plan", "above its limit after the plan", ""),
    CheckCode.ORDER: ("No step is worse than now", "Some steps are worse than now",
                      "peak imbalance"),
    CheckCode.RATES: ("Rates as in the snapshot", "Rates differ from the snapshot", "changed by"),
    CheckCode.ENDED: ("Queries as in the snapshot", "Queries have ended", "ended"),
    CheckCode.NEW: ("Few new queries", "Many new queries", "new"),
    CheckCode.GAIN: ("The gain remains", "The gain is gone", "lost"),
    CheckCode.PAUSE: ("Longest pause", "Queries pause too long", ""),
    CheckCode.FOUR_EYES: ("Approver is not the requester", "Approver is the requester",
                          "requested by"),
    CheckCode.BLACKOUT: ("No blackout", "In a blackout", ""),
}  # fmt: skip


def check_rows(checks: Sequence[Check]) -> list[dict[str, Any]]:
    """Return the checks as text, those that fail first."""
    rows = [_row(check) for check in checks]
    return sorted(rows, key=lambda row: bool(row["passed"]))


def _row(check: Check) -> dict[str, Any]:
    good, bad, before = _TITLES[check.code]
    parts = []
    if check.number is not None:
        parts.append(f"{before} {_text(check, check.number)}".strip())
        if check.limit is not None:
            parts.append(f"limit {_text(check, check.limit)}")
    elif check.detail:
        parts.append(f"{before} {check.detail}".strip())
    title = good if check.passed else bad
    if check.code is CheckCode.LIMIT:
        title = f"{check.detail} {title}"
    text = ", ".join(parts)
    return {"code": check.code, "title": title, "passed": check.passed, "text": text}


def _text(check: Check, value: float) -> str:
    return seconds(value / 1000) if check.unit == "ms" else value_text(value, check.unit)
