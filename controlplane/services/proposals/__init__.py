"""Proposals: request, compute, decide; the front door of this room."""

from controlplane.services.proposals.computing import compute, fail_lost
from controlplane.services.proposals.deciding import approve, cancel, reject, withdraw
from controlplane.services.proposals.deriving import without
from controlplane.services.proposals.drift import Drift, drift_of
from controlplane.services.proposals.requesting import ask_anew, request
from controlplane.services.proposals.transitions import allowed_verbs

__all__ = [
    "Drift",
    "allowed_verbs",
    "approve",
    "ask_anew",
    "cancel",
    "compute",
    "drift_of",
    "fail_lost",
    "reject",
    "request",
    "withdraw",
    "without",
]
