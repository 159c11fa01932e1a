"""Tasks of webhooks, and of events of OpenLineage."""

from celery import shared_task
from django.utils import timezone

from controlplane.events.task_names import SEND_DUE_WEBHOOKS, SEND_LINEAGE, SEND_WEBHOOK
from controlplane.integrations import deliveries, lineage


@shared_task(name=SEND_WEBHOOK)
def send_webhook(webhook_id: int) -> None:
    """Send a webhook's messages that are due; what does not arrive, the beat's task requests."""
    deliveries.send(webhook_id)


@shared_task(name=SEND_DUE_WEBHOOKS)
def send_due_webhooks() -> None:
    """Send the messages that are due."""
    deliveries.send_due(timezone.now())


@shared_task(name=SEND_LINEAGE)
def send_lineage() -> None:
    """Send the starts and ends of queries' runs that the catalog has not received."""
    lineage.send_events(timezone.now())
