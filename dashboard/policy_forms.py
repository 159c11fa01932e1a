"""The form of a policy: its sections and fields, from settings to text and back."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import time
from typing import Any, Final

from controlplane.errors import Fields, Invalid
from controlplane.models import Policy
from controlplane.models.policy import APPROVERS
from controlplane.services.policies.telling import DAY_NAMES, KIND_WORDS


@dataclass(frozen=True)
class Setting:
    """One setting: what its field says, and how it is written.

    kind: number, flag, choice, many or time. scale: what the number in the field is multiplied by;
    whole numbers stay whole. choices: value and words.
    """

    name: str
    label: str
    kind: str = "number"
    unit: str = ""
    hint: str = ""
    scale: float = 1.0
    choices: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Section:
    """Settings that belong together."""

    title: str
    about: str
    settings: tuple[Setting, ...] = field(default_factory=tuple)


_PERCENT: Final = 0.01
_MB: Final = 1e6
_KINDS: Final = tuple((kind, f"{kind}: {words}") for kind, words in KIND_WORDS.items())
_DAYS: Final = tuple((str(day), name) for day, name in enumerate(DAY_NAMES))
_WATCH: Final = (
    ("off", "off: look at nothing"),
    ("recommend", "recommend: ask planners, and leave the plan to people"),
    ("act", "act: approve the plan where it applies by itself"),
)
SECTIONS: Final = (
    Section("What applies by itself", "A plan within all of this begins without a person.", (
        Setting("auto_kinds", "Kinds of plans", "many", choices=_KINDS,
                hint="Those of placement and migration move operator state."),
        Setting("auto_asked", "Also plans that people asked for", "flag",
                hint="Else only those of the watch loops."),
        Setting("auto_moves", "Moves, at most"),
        Setting("auto_bytes", "State, at most", unit="MB", scale=_MB),
        Setting("auto_gain", "Gain, at least", unit="%", scale=_PERCENT,
                hint="In imbalance or replication factor, whichever the plan lowers more."),
        Setting("auto_from", "From", "time", unit="UTC", hint="Empty: at any hour."),
        Setting("auto_until", "Until", "time", unit="UTC",
                hint="Before “from”: over midnight."),
        Setting("auto_days", "On", "many", choices=_DAYS, hint="None ticked: every day."),
        Setting("auto_record", "Only of planners with a good record", "flag",
                hint="As the ledger has it: what they promised against what was measured."),
        Setting("auto_record_runs", "Good from", unit="plans carried out"),
        Setting("auto_record_error", "Off by at most", unit="%, median", scale=_PERCENT),
    )),
    Section("Who decides", "On everything else.", (
        Setting("approvers", "Approved by", "choice", choices=tuple(APPROVERS),
                hint="This role and those above it."),
        Setting("four_eyes", "Not by the one who asked", "flag"),
        Setting("starts", "An approved plan begins at once", "flag",
                hint="Else it waits, and its approval can be withdrawn."),
    )),
    Section("Watch loops", "What they act on, and how often.", (
        Setting("watch", "The loops", "choice", choices=_WATCH),
        Setting("watch_imbalance", "Imbalance above", unit="%", scale=_PERCENT),
        Setting("watch_replication", "Replication above", unit="× its bound",  # noqa: RUF001
                hint="Times its lower bound."),
        Setting("latency_ms", "p95 latency above", unit="ms",
                hint="Also what slows an execution down."),
        Setting("dead_band", "Mended when below by", unit="%", scale=_PERCENT,
                hint="The dead band; a plan must gain as much to be proposed."),
        Setting("cooldown_s", "Between two plans", unit="seconds", hint="The cool-down."),
    )),
    Section("Drift", "What may change between snapshot and step before a plan is stale.", (
        Setting("tolerated_rates", "Rates changed by", unit="%", scale=_PERCENT),
        Setting("tolerated_ended", "Queries ended", unit="% of them", scale=_PERCENT),
        Setting("tolerated_new", "Queries new", unit="% as many", scale=_PERCENT),
    )),
    Section("How fast", "Bounds of each step of an execution.", (
        Setting("node_moves", "Moves per node", unit="at once"),
        Setting("cluster_moves", "Moves in all", unit="at once"),
        Setting("bytes_per_s", "State", unit="MB/s", scale=_MB),
        Setting("pause_ms", "A task pauses at most", unit="ms"),
    )),
)  # fmt: skip
SETTINGS: Final = tuple(one for section in SECTIONS for one in section.settings)


@dataclass(frozen=True)
class ShownSetting:
    """A setting with the text or the ticks that its field shows, and what is wrong with them."""

    setting: Setting
    value: str
    ticked: frozenset[str]
    faults: list[str]


def shown_sections(
    policy: Policy, sent: Mapping[str, list[str]] | None = None, faults: Fields | None = None
) -> list[tuple[Section, list[ShownSetting]]]:
    """Return the form with a policy's settings, or with what was sent of it."""
    return [
        (section, [_shown(one, policy, sent, faults or {}) for one in section.settings])
        for section in SECTIONS
    ]


def policy_changes(sent: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return the settings that a form has; raises `Invalid` for text that is no number."""
    faults: Fields = {}
    found: dict[str, Any] = {}
    for one in SETTINGS:
        values = sent.get(one.name, [])
        text = values[0].strip() if values else ""
        if one.kind == "flag":
            found[one.name] = bool(text)
        elif one.kind == "many":
            found[one.name] = _many(one, values)
        elif one.kind == "number":
            found[one.name] = _number(one, text, faults)
        else:
            found[one.name] = text or None if one.kind == "time" else text
    if faults:
        raise Invalid(faults)
    return found


def _shown(
    one: Setting, policy: Policy, sent: Mapping[str, list[str]] | None, faults: Fields
) -> ShownSetting:
    texts = _texts(one, getattr(policy, one.name)) if sent is None else sent.get(one.name, [])
    value = texts[0] if texts else ""
    return ShownSetting(one, value, frozenset(texts), faults.get(one.name, []))


def _texts(one: Setting, value: Any) -> list[str]:
    """Return a setting's value as its field would send it."""
    if one.kind == "many":
        return [str(item) for item in value]
    if one.kind == "flag":
        return ["1"] if value else []
    if isinstance(value, time):
        return [f"{value:%H:%M}"]
    return [f"{value / one.scale:.12g}"] if one.kind == "number" else [str(value or "")]


def _many(one: Setting, values: list[str]) -> list[Any]:
    return [int(v) if v.isdecimal() and len(v) == 1 else v for v in values]


def _number(one: Setting, text: str, faults: Fields) -> float | int | None:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        faults[one.name] = [f"{text[:40]} is no number" if text else "Must be a number"]
        return None
    if one.scale == 1.0:
        return found
    # A tenth of a megabyte is a whole number of bytes, whatever the product's last digit says.
    return round(found * one.scale, 9) if one.scale < 1 else round(found * one.scale)
