"""The workers of the Lab: its tasks, sweeps on Spark, precomputation, the live figure."""

from typing import Final

TASK_PACKAGES: Final = ("workers.lab",)
# What the beat calls, with its period in seconds.
PERIODS_S: Final = (("weir.requeue_lab_runs", 15),)
