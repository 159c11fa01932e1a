"""schemathesis: generated requests to every operation, with all its checks.

By day the least and the greatest role send a valid one per operation, by night every role sends 25
valid and invalid ones.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import hypothesis
import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation

from controlplane.access import tokens
from controlplane.access.roles import ROLES
from controlplane.models import Cluster
from tests.controlplane.api.callers import user_of
from tests.support.api_world import address_of, rich_cluster
from tests.support.cluster import actor
from tests.support.nightly import NIGHTLY

EXAMPLES: Final = 25 if NIGHTLY else 1
# Of processor time, per operation and example: a generator that rejects its data would not end.
LIMIT_S: Final = 10.0
# A value may be of its type and still not be valid here: an unknown stream, a time in the past.
SEMANTIC = ("2xx", "3xx", "400", "401", "403", "404", "409", "413", "415", "422", "429", "503")


class TookTooLong(BaseException):
    """An operation took more processor time than it may; hypothesis does not catch it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TookTooLong` after this processor time, which another process cannot use up."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.fixture
def world(db: None, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster with a row of every kind; a feed of events ends at once."""
    monkeypatch.setattr("controlplane.api.queries.feed.LONGEST_S", 0.0)
    return rich_cluster(actor("operator"))


@pytest.fixture(autouse=True)
def one_connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep the connection of the test, which a request of a real server closes at its end."""
    for moment in (request_started, request_finished):
        moment.disconnect(close_old_connections)
    monkeypatch.setattr("channels.db.close_old_connections", lambda: None)
    yield
    for moment in (request_started, request_finished):
        moment.connect(close_old_connections)


@pytest.fixture
def headers(world: Cluster) -> dict[str, dict[str, str]]:
    """The header of a token of each role."""
    roles = ROLES if NIGHTLY else (ROLES[0], ROLES[-1])
    people = {role: actor(role, f"the-{role}") for role in roles}
    return {
        role: {
            "Authorization": f"Bearer {tokens.create(user_of(person), 'test')}",
            # The client decodes nothing that a real one would.
            "Accept-Encoding": "identity",
        }
        for role, person in people.items()
    }


def operations(headers: dict[str, str]) -> Iterator[APIOperation[Any, Any, Any, Any]]:
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", WSGIHandler(), headers=headers)
    checks = schema.config.checks
    checks.positive_data_acceptance.expected_statuses = list(SEMANTIC)
    checks.negative_data_rejection.expected_statuses = [*SEMANTIC[2:], "405"]
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        yield result.ok()


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param(GenerationMode.POSITIVE, marks=pytest.mark.nightly("requests", by_day=True)),
        pytest.param(GenerationMode.NEGATIVE, marks=pytest.mark.nightly("requests")),
    ],
)
def test_generated_requests_are_answered_as_documented(
    mode: GenerationMode, world: Cluster, headers: dict[str, dict[str, str]]
) -> None:
    """No check of schemathesis fails, whatever the role and the data."""
    faults = list[str]()
    for operation in operations(headers["viewer"]):
        if mode == GenerationMode.NEGATIVE and not (operation.query or operation.body):
            # Ids and the token are given, so nothing of the request can be wrong.
            continue
        faults += _faults(operation, mode, world, headers)
    assert not faults, "\n\n".join(faults)


def _faults(
    operation: APIOperation[Any, Any, Any, Any],
    mode: GenerationMode,
    world: Cluster,
    headers: dict[str, dict[str, str]],
) -> list[str]:
    """Return the failure of the first example of an operation that fails; every role sends each."""
    pairs = zip(
        operation.path.split("/"), address_of(operation.path, world).split("/"), strict=True
    )
    known = {name.strip("{}"): value for name, value in pairs if name.startswith("{")}
    # Generated ids name no row; with known ones the request reaches the service.
    strategy = operation.as_strategy(
        generation_mode=mode, path_parameters=known or None, headers=headers["viewer"]
    )
    count = 0

    @hypothesis.settings(
        max_examples=EXAMPLES, database=None, derandomize=not NIGHTLY, deadline=None,
        phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def run(case: schemathesis.Case[Any]) -> None:
        nonlocal count
        count += 1
        for header in headers.values():
            # What it changes is reverted, so that the next one meets the same rows.
            with transaction.atomic():
                case.call_and_validate(headers=header)
                transaction.set_rollback(True)

    limit_s = LIMIT_S * EXAMPLES
    name = f"{operation.method.upper()} {operation.path} ({mode})"
    try:
        with time_limit(limit_s):
            run()
    except TookTooLong:
        return [f"{name}: {count} examples in {limit_s} s of processor time"]
    except BaseException as error:  # noqa: BLE001 - schemathesis groups its failures
        return [f"{name}: {error}"[:2_000]]
    return []
