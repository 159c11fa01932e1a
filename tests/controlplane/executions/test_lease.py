"""The lease of an execution: one process has it, until it is released, lost or expired."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.executions.progression import LEASE, Taken, lease_on, renew
from controlplane.models import Cluster, Execution
from tests.support.execution import execution_row

pytestmark = pytest.mark.django_db


@pytest.fixture
def execution(sf: Cluster) -> Execution:
    return execution_row(sf)


@pytest.mark.parametrize(
    ("owner", "left_s", "free"),
    [("", None, True), ("", 10, True), ("a", None, True), ("a", -1, True), ("a", 10, False)],
)
def test_a_lease_is_free_without_owner_or_after_its_time(
    execution: Execution, owner: str, left_s: float | None, free: bool
) -> None:
    until = None if left_s is None else timezone.now() + timedelta(seconds=left_s)
    Execution.objects.update(lease_owner=owner, lease_until=until)
    if not free:
        with pytest.raises(Taken), lease_on(execution.pk):
            pass
        assert Execution.objects.get().lease_owner == owner
        return
    with lease_on(execution.pk) as mine:
        assert Execution.objects.get().lease_owner == mine
    row = Execution.objects.get()
    assert (row.lease_owner, row.lease_until) == ("", None)


def test_a_renewed_lease_lasts_its_whole_time(execution: Execution) -> None:
    with lease_on(execution.pk) as mine:
        Execution.objects.update(lease_until=timezone.now())
        before = timezone.now()
        renew(execution.pk, mine)
        until = Execution.objects.get().lease_until
        assert until is not None
        assert before + LEASE <= until <= timezone.now() + LEASE


def test_a_lost_lease_is_neither_renewed_nor_released(execution: Execution) -> None:
    """Another process has taken it after its time."""
    with lease_on(execution.pk) as mine:
        Execution.objects.update(lease_owner="another")
        with pytest.raises(Taken):
            renew(execution.pk, mine)
    assert Execution.objects.get().lease_owner == "another"
