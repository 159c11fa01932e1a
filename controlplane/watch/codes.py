"""The stable codes of the reasons of decisions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Code:
    """A reason with its label and its description for people.

    `calm`: True if the figure is within its limit or not observed. `grade`: good, warn or unknown.
    """

    name: str
    title: str
    about: str
    calm: bool = False
    grade: str = "warn"


STALE: Final = "stale"
_ALL: Final = (
    Code("balanced", "OK", "The load is balanced within the limit", calm=True, grade="good"),
    Code("within", "OK", "The figure is within its limit", calm=True, grade="good"),
    Code("off", "Off", "The policy switches the watch loops off", calm=True, grade="unknown"),
    Code("not_running", "Cluster stopped", "The cluster is stopped", calm=True, grade="unknown"),
    Code("no_data", "No data", "There are no measurements yet", calm=True, grade="unknown"),
    Code("data_too_old", "Data too old", "The newest measurement is too old", calm=True),
    Code(
        "catching_up",
        "Catching up",
        "The cluster works off the backlog of an outage: its rates and latencies show no load",
        calm=True,
    ),
    Code(
        "dead_band",
        "In the dead band",
        "The figure is below its limit again, but within the dead band",
    ),
    Code(STALE, "Ladder stale", "The armed ladder is stale, but not for long enough", calm=True),
    Code("execution_running", "Plan in progress", "A proposal of the cluster is being executed"),
    Code(
        "proposal_waiting",
        "Proposal waits",
        "A proposal for the cluster is being computed, or waits for a person",
    ),
    Code("cooldown", "Cool-down", "The cool-down after the last proposal of the loops is not over"),
    Code("blackout", "Blackout", "A blackout is in effect: nothing starts automatically"),
    Code("excluded", "Excluded", "Exclusions forbid the necessary actions"),
    Code("no_planner", "No planner can help", "No connected planner can help"),
    Code("silent", "Not reporting", "A node with tasks does not report: check whether it is lost"),
    Code("asked", "Plan requested", "A plan is being computed"),
    Code("no_gain", "No gain", "The plan gains too little, so it is not proposed"),
    Code(
        "spoils",
        "Worsens another measure",
        "The plan worsens another measure, so it is not proposed",
    ),
    Code("failed", "No plan found", "No plan could be computed"),
    Code(
        "drifted", "Cluster drifted", "The cluster had drifted from the snapshot before the start"
    ),
    Code("recommended", "Proposed", "A proposal waits for a person"),
    Code("acted", "Approved by policy", "The policy approved a proposal, which starts"),
    Code(
        "redirected",
        "Redirected",
        "Streams were redirected to other split nodes",
        calm=True,
        grade="good",
    ),
    Code(
        "no_capacity",
        "No known capacity",
        "The capacity of split nodes is neither declared nor measured",
        calm=True,
        grade="unknown",
    ),
    Code(
        "too_large", "Stream too large", "The rate of a stream exceeds the capacity of a split node"
    ),
    Code("split_limit", "Limit of split nodes", "The policy allows no more split nodes"),
    Code(
        "busy", "Routing changed", "The routing table changed meanwhile", calm=True, grade="unknown"
    ),
)
CODES: Final[Mapping[str, Code]] = {code.name: code for code in _ALL}


def is_calm(name: str) -> bool:
    """Return True if a loop with this last code had no problem; unknown codes are calm."""
    return name not in CODES or CODES[name].calm
