"""The processes of the control plane: every queue has its worker, and no worker has another's."""

from pathlib import Path

from django.conf import settings

from controlplane.events.task_names import QUEUES
from controlplane.processes.runtime.children import WORKER, ChildSpec, Place, service_children


def children() -> list[ChildSpec]:
    return service_children(Place(Path("/data"), "127.0.0.1", 8000, "redis://x", Path("/java")), 3)


def option(spec: ChildSpec, name: str) -> str:
    return spec.command[spec.command.index(name) + 1]


def workers() -> dict[str, ChildSpec]:
    return {spec.name: spec for spec in children() if "--queues" in spec.command}


def test_every_queue_has_one_worker_of_its_own() -> None:
    """What waits for a receiver or an experiment holds up nothing else."""
    assert sorted(option(spec, "--queues") for spec in workers().values()) == sorted(QUEUES)
    assert option(workers()["webhooks"], "--queues") == "webhooks"
    assert option(workers()["webhooks"], "--pool") == "threads"


def test_tasks_are_sent_to_queues_that_somebody_takes() -> None:
    sent = {route["queue"] for route in settings.CELERY_TASK_ROUTES.values()}
    assert sent | {settings.CELERY_TASK_DEFAULT_QUEUE} == set(QUEUES)


def test_processes_have_names_of_their_own() -> None:
    """The start waits for the main worker by its name."""
    names = [option(spec, "--hostname") for spec in workers().values()]
    assert len(set(names)) == len(names)
    assert option(workers()["worker"], "--hostname") == WORKER
    assert len({spec.name for spec in children()}) == len(children())
