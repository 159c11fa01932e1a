"""Policies: what applies by itself and when, who decides, what is left alone; the front door."""

from controlplane.services.policies.applying import Verdict, applies_by_itself
from controlplane.services.policies.blackouts import (
    add_blackout,
    blackout_until,
    in_blackout,
    remove_blackout,
)
from controlplane.services.policies.changing import EDITABLE, update_policy
from controlplane.services.policies.exclusions import (
    add_exclusion,
    live_exclusions,
    prune_exclusions,
    remove_exclusion,
)
from controlplane.services.policies.gains import IMBALANCE, REPLICATION, Gain, gain_of, worsened
from controlplane.services.policies.reading import caps_of, policy_of
from controlplane.services.policies.telling import summary

__all__ = [
    "EDITABLE",
    "IMBALANCE",
    "REPLICATION",
    "Gain",
    "Verdict",
    "add_blackout",
    "add_exclusion",
    "applies_by_itself",
    "blackout_until",
    "caps_of",
    "gain_of",
    "in_blackout",
    "live_exclusions",
    "policy_of",
    "prune_exclusions",
    "remove_blackout",
    "remove_exclusion",
    "summary",
    "update_policy",
    "worsened",
]
