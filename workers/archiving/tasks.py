"""The task of archiving."""

from celery import shared_task
from django.utils import timezone

from controlplane.events.task_names import ARCHIVE
from controlplane.results import archiving


@shared_task(name=ARCHIVE)
def archive() -> None:
    """Move windows that nothing changes any more from Redis to the disk."""
    archiving.archive_windows(timezone.now())
