"""Request ids: in the answer, in the log, in the audit row."""

import logging

import pytest

from controlplane.access.request_ids import WithRequest, begin
from controlplane.access.roles import Actor
from controlplane.models import AuditEntry, Cluster
from tests.controlplane.api.callers import get, post, scripted

pytestmark = pytest.mark.django_db(transaction=True)


def test_each_request_has_an_id_of_its_own(operator: Actor, sf: Cluster) -> None:
    script = scripted(operator)
    ids = {get(script, "/clusters")["X-Request-ID"] for _ in range(3)}
    assert len(ids) == 3


def test_a_sane_id_is_taken_and_kept_with_what_it_changed(operator: Actor, sf: Cluster) -> None:
    answer = post(scripted(operator), "/clusters/sf/start", **{"x-request-id": "trace-0001.a"})
    assert answer["X-Request-ID"] == "trace-0001.a"
    assert AuditEntry.objects.get(action="cluster.start").request == "trace-0001.a"
    assert get(scripted(operator), "/audit?request=trace-0001.a").json()["total"] == 1


@pytest.mark.parametrize("given", ["short", "x" * 41, "with blank", "line\nbreak", "<b>aaaaaaa"])
def test_an_id_that_could_do_harm_is_replaced(operator: Actor, sf: Cluster, given: str) -> None:
    """It goes into logs and into a column."""
    answer = get(scripted(operator), "/clusters", **{"x-request-id": given})
    assert answer["X-Request-ID"] != given


def test_a_refusal_names_its_request(operator: Actor, sf: Cluster) -> None:
    """What a person reports is what the log can be searched for."""
    answer = get(scripted(operator), "/clusters/none")
    assert answer.json()["request"] == answer["X-Request-ID"]


def test_a_log_line_names_the_request() -> None:
    record = logging.makeLogRecord({"msg": "x"})
    begin("trace-0002.b")
    try:
        assert WithRequest().filter(record)
    finally:
        begin("")
    assert vars(record)["request_id"] == " [trace-0002.b]"
