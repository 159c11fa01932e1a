"""schemathesis: generated requests to every operation, with all its checks, by every role.

`WEIR_SCHEMATHESIS_EXAMPLES` sets the number of requests per operation and kind of data; the nightly
run takes more of them.
"""

import os
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import hypothesis
import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation

from controlplane.access import tokens
from controlplane.access.roles import ROLES
from controlplane.models import Cluster
from tests.controlplane.api.callers import user_of
from tests.support.api_world import address_of, rich_cluster
from tests.support.cluster import actor

EXAMPLES = int(os.environ.get("WEIR_SCHEMATHESIS_EXAMPLES", "5"))
# Wrong data is generated slowly: in the nightly run alone. tests/controlplane/api/common has fast
# tests of unknown fields, unknown parameters and wrong values.
MODES = [GenerationMode.POSITIVE, *([GenerationMode.NEGATIVE] if EXAMPLES > 5 else [])]
# A value may be of its type and still not be valid here: an unknown stream, a time in the past.
SEMANTIC = ("2xx", "3xx", "400", "401", "403", "404", "409", "413", "415", "422", "429", "503")


@pytest.fixture
def world(db: None, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster with a row of every kind; a feed of events ends at once."""
    monkeypatch.setattr("controlplane.api.queries.feed.LONGEST_S", 0.0)
    return rich_cluster(actor("operator"))


@pytest.fixture(autouse=True)
def one_connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep the connection of the test, which a request of a real server closes at its end."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    monkeypatch.setattr("channels.db.close_old_connections", lambda: None)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def headers(world: Cluster) -> dict[str, dict[str, str]]:
    """The header of a token of each role."""
    people = {role: actor(role, f"the-{role}") for role in ROLES}
    return {
        role: {"Authorization": f"Bearer {tokens.create(user_of(person), 'test')}"}
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


@pytest.mark.parametrize("mode", MODES)
def test_generated_requests_are_answered_as_documented(
    mode: GenerationMode, world: Cluster, headers: dict[str, dict[str, str]]
) -> None:
    """No check of schemathesis fails, whatever the role and the data."""
    faults = list[str]()
    for operation in operations(headers["viewer"]):
        if mode == GenerationMode.NEGATIVE and not (operation.query or operation.body):
            # Ids and the token are given, so nothing of the request can be wrong.
            continue
        faults += _faults(operation, mode, world, list(headers.values()))
    assert not faults, "\n\n".join(faults)


def _faults(
    operation: APIOperation[Any, Any, Any, Any],
    mode: GenerationMode,
    world: Cluster,
    roles: list[dict[str, str]],
) -> list[str]:
    """Return the failure of the first example of an operation that fails."""
    pairs = zip(
        operation.path.split("/"), address_of(operation.path, world).split("/"), strict=True
    )
    known = {name.strip("{}"): value for name, value in pairs if name.startswith("{")}
    # Generated ids name no row; with known ones the request reaches the service.
    strategies = [
        operation.as_strategy(generation_mode=mode, path_parameters=known or None, headers=role)
        for role in roles
    ]
    role = cycle(roles)

    @hypothesis.settings(
        max_examples=EXAMPLES, database=None, derandomize=True, deadline=None,
        phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(hypothesis.strategies.sampled_from(strategies).flatmap(lambda strategy: strategy))
    def run(case: schemathesis.Case[Any]) -> None:
        # What it changes is reverted, so that the next one meets the same rows.
        with transaction.atomic():
            case.call_and_validate(headers=next(role))
            transaction.set_rollback(True)

    try:
        run()
    except Unsatisfiable:
        # Nothing of the request can be wrong: an operation without parameters and body.
        return []
    except BaseException as error:  # noqa: BLE001 - schemathesis groups its failures
        return [f"{operation.method.upper()} {operation.path} ({mode}): {error}"[:2_000]]
    return []
