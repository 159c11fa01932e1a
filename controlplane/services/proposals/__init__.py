"""Proposals: request, compute, cancel, reject, apply, finish; the front door of this room."""

from controlplane.services.proposals.applying import apply, finish
from controlplane.services.proposals.computing import compute, fail_lost
from controlplane.services.proposals.deciding import cancel, reject
from controlplane.services.proposals.drift import Drift, drift_of
from controlplane.services.proposals.requesting import request

__all__ = [
    "Drift",
    "apply",
    "cancel",
    "compute",
    "drift_of",
    "fail_lost",
    "finish",
    "reject",
    "request",
]
