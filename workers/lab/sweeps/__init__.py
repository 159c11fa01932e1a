"""Sweeps of experiments on Spark: the trials of a run, distributed over the cores of a master."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from algorithms.lab.experiment import Emit
    from algorithms.lab.experiments import Table
    from algorithms.vocabulary import Progress
    from controlplane.lab.engines import Sweep


def run_on_spark(sweep: "Sweep", progress: "Progress", emit: "Emit") -> "Table":
    """Return the table of a sweep, whose trials are computed on its master.

    Raises what a trial raises, and `EngineUnavailable` without Java.
    """
    # Neither workers without such runs nor Spark's own processes, which import `trials`, load it.
    from workers.lab.sweeps.engine import distribute  # noqa: PLC0415

    return distribute(sweep, progress, emit)
