"""Runs of the Lab: requested experiments and their tables."""

from typing import Any

from django.db import models

from controlplane.models.cluster import valid_master


class LabRun(models.Model):
    """A requested run of an experiment, with its table once it is done.

    `parameters`: those of the experiment without the swept one, whose values are `values`;
    `series`: the compared algorithms. `attempts` counts the claims of workers: a worker writes only
    while the number is that of its claim. `beat_at`: the last heartbeat. `table`: {"columns":
    [...], "rows": [[...], ...]}, complete in the state done; before, and after a failure or a
    cancellation, it has the rows that were computed, {} for none. `requested_by`: a user name.
    `estimate`: the estimated need at the request (controlplane.lab.time_estimates). `error_code`: a
    stable name of a failure. `name`: given by a person, "" for none. `visibility`: who sees the
    run besides admins. `master`: the Spark master that computes the points, "" for the Lab's
    worker. `timings`: seconds by series.
    """

    class State(models.TextChoices):
        """The state of a run."""

        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    class Visibility(models.TextChoices):
        """Who sees a run: every user, or its owner (and admins)."""

        EVERYONE = "everyone"
        OWNER = "owner"

    planner = models.CharField(max_length=30)
    experiment = models.CharField(max_length=60)
    parameters = models.JSONField(default=dict, blank=True)
    values = models.JSONField(default=list, blank=True)
    series = models.JSONField(default=list, blank=True)
    state = models.CharField(max_length=12, choices=State, default=State.QUEUED)
    progress = models.FloatField(default=0.0)
    attempts = models.PositiveIntegerField(default=0)
    requested_by = models.CharField(max_length=150, blank=True)
    requested_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    beat_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    table = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)
    error_code = models.CharField(max_length=30, blank=True)
    estimate = models.JSONField(default=dict, blank=True)
    name = models.CharField(max_length=100, blank=True, default="")
    visibility = models.CharField(max_length=10, choices=Visibility, default=Visibility.EVERYONE)
    master = models.CharField(max_length=250, blank=True, default="", validators=[valid_master])
    timings = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["-requested_at", "-id"]
        indexes = [
            models.Index(fields=["-requested_at", "-id"], name="lab_run_by_age"),
            models.Index(
                fields=["state", "requested_at"],
                condition=models.Q(state__in=("queued", "running")),
                name="lab_run_open",
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @property
    def seeds(self) -> Any:
        """Return the number of generated workloads per point."""
        return self.parameters.get("seeds")

    @property
    def title(self) -> str:
        """Return the name that a person gave, else the number."""
        return self.name or f"Run {self.pk}"

    @property
    def under_way(self) -> bool:
        """Return True if the run is queued or running."""
        return self.state in (self.State.QUEUED, self.State.RUNNING)
