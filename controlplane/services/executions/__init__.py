"""Executions: approved proposals carried out step by step; the front door of this room."""

from controlplane.services.executions.acknowledging import acknowledge
from controlplane.services.executions.advancing import advance
from controlplane.services.executions.beginning import begin
from controlplane.services.executions.steering import (
    finish_step,
    pause,
    resume,
    roll_back,
    stop,
)
from controlplane.services.executions.tending import tend

__all__ = [
    "acknowledge",
    "advance",
    "begin",
    "finish_step",
    "pause",
    "resume",
    "roll_back",
    "stop",
    "tend",
]
