"""The stable codes of the reasons of decisions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class DecisionCode:
    """A reason with its label and its description for people.

    `grade`: good if the figure is within its limit, unknown if it is not observed or needs
    nothing yet, warn for a problem.
    """

    name: str
    title: str
    about: str
    grade: str = "warn"


STALE: Final = "stale"
_ALL: Final = (
    DecisionCode("balanced", "OK", "The load is balanced within the limit", grade="good"),
    DecisionCode("within", "OK", "The figure is within its limit", grade="good"),
    DecisionCode("off", "Off", "The policy switches the monitors off", grade="unknown"),
    DecisionCode("not_running", "Cluster stopped", "The cluster is stopped", grade="unknown"),
    DecisionCode(
        "no_data", "No data", "There are no measurements yet, or no new records", grade="unknown"
    ),
    DecisionCode(
        "data_too_old",
        "Data too old",
        "The newest measurement is too old",
        grade="unknown",
    ),
    DecisionCode(
        "catching_up",
        "Catching up",
        "The cluster works off the backlog of an outage: its rates and latencies show no load",
        grade="unknown",
    ),
    DecisionCode(
        "dead_band",
        "Just below limit",
        "The figure is below its limit again, but within the clear threshold",
    ),
    DecisionCode(
        STALE,
        "Shedding plan stale",
        "The enabled shedding plan is stale, but not for long enough",
        grade="unknown",
    ),
    DecisionCode(
        "answered",
        "Shedding plan enabled",
        "The limit is exceeded; the enabled shedding plan drops what cannot be processed in time",
        grade="unknown",
    ),
    DecisionCode(
        "execution_running", "Plan in progress", "A proposal of the cluster is being executed"
    ),
    DecisionCode(
        "proposal_waiting",
        "Proposal waits",
        "A proposal for the cluster is being computed, or waits for a person",
    ),
    DecisionCode(
        "cooldown", "Cool-down", "The cool-down after the last proposal of the monitors is not over"
    ),
    DecisionCode("blackout", "Blackout", "A blackout is in effect: nothing starts automatically"),
    DecisionCode("excluded", "Excluded", "Exclusions forbid the necessary actions"),
    DecisionCode("no_planner", "No planner can help", "No connected planner can help"),
    DecisionCode(
        "silent", "Not reporting", "A node with tasks does not report: check whether it is lost"
    ),
    DecisionCode("asked", "Plan requested", "A plan is being computed"),
    DecisionCode("no_gain", "No gain", "The plan gains too little, so it is not proposed"),
    DecisionCode(
        "spoils",
        "Worsens another measure",
        "The plan worsens another measure, so it is not proposed",
    ),
    DecisionCode("failed", "No plan found", "No plan could be computed"),
    DecisionCode(
        "drifted", "Cluster drifted", "The cluster had drifted from the snapshot before the start"
    ),
    DecisionCode("recommended", "Proposed", "A proposal waits for a person"),
    DecisionCode("acted", "Approved by policy", "The policy approved a proposal, which starts"),
    DecisionCode(
        "redirected",
        "Redirected",
        "Streams were redirected to other split nodes",
        grade="good",
    ),
    DecisionCode(
        "no_capacity",
        "No known capacity",
        "The capacity of split nodes is neither declared nor measured",
        grade="unknown",
    ),
    DecisionCode(
        "too_large", "Stream too large", "The rate of a stream exceeds the capacity of a split node"
    ),
    DecisionCode("split_limit", "Limit of split nodes", "The policy allows no more split nodes"),
    DecisionCode("busy", "Routing changed", "The routing table changed meanwhile", grade="unknown"),
)
CODES: Final[Mapping[str, DecisionCode]] = {code.name: code for code in _ALL}


def is_calm(name: str) -> bool:
    """Return True if a loop with this last code had no problem; unknown codes are calm."""
    return name not in CODES or CODES[name].grade != "warn"
