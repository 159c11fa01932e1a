"""The lease of an execution: one process has it, until it is released, lost or expired."""

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError
from django.utils import timezone

from controlplane.errors import Conflict
from controlplane.events.task_names import ADVANCE
from controlplane.models import Cluster, Execution, Proposal
from controlplane.proposals.executions import progression
from controlplane.proposals.executions.progression import (
    Taken,
    lease_on,
    renew,
    translate_integrity_error,
)
from tests.support.execution import execution_row
from tests.support.policies import set_policy

pytestmark = pytest.mark.django_db
LEASE = timedelta(seconds=15)


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
    before = timezone.now()
    with lease_on(execution.pk) as mine:
        row = Execution.objects.get()
        assert row.lease_owner == mine
        assert row.lease_until is not None
        assert before + LEASE <= row.lease_until <= timezone.now() + LEASE
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


def test_the_log_has_why_a_process_does_not_advance(
    execution: Execution, caplog: pytest.LogCaptureFixture
) -> None:
    with lease_on(execution.pk), caplog.at_level(logging.INFO, progression.__name__):
        progression.advance(execution.proposal_id)
    assert [record.args for record in caplog.records] == [(execution,)]


def test_advances_are_requested_for_what_is_open(
    execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for an approved proposal that a person starts, nor for one that is paused."""
    sent: list[Any] = []
    monkeypatch.setattr(
        progression, "send_on_commit", lambda *given, expires_s: sent.append((*given, expires_s))
    )
    assert progression.request_advances() == 1
    assert sent == [(ADVANCE, execution.proposal_id, 2.0)], "the next one comes in two seconds"
    Proposal.objects.update(state="approved")
    assert progression.request_advances() == 1
    set_policy(execution.cluster, starts=False)
    assert progression.request_advances() == 0
    # Another cluster's proposal, which was approved later.
    execution_row(Cluster.objects.create(slug="nyc", name="NYC"))
    assert progression.request_advances() == 1
    Proposal.objects.update(state="paused")
    assert progression.request_advances() == 0


def test_a_second_execution_is_a_conflict() -> None:
    with pytest.raises(Conflict) as refused, translate_integrity_error():
        raise IntegrityError
    assert refused.value.code == "another_executing"


def test_a_lost_lease_is_neither_renewed_nor_released(execution: Execution) -> None:
    """Another process has taken it after its time."""
    with lease_on(execution.pk) as mine:
        Execution.objects.update(lease_owner="another")
        with pytest.raises(Taken):
            renew(execution.pk, mine)
    assert Execution.objects.get().lease_owner == "another"
