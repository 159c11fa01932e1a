"""Commands of the data plane wait for a Redis that is away, and for its user after that."""

import pytest
from redis.exceptions import AuthenticationError
from redis.exceptions import ConnectionError as RedisConnectionError

from controlplane.wire import redis_clients


@pytest.mark.parametrize(
    ("back_s", "user_s", "fails"),
    [
        (30.0, 40.0, None),
        (30.0, 50.0, AuthenticationError),
        (0.0, 14.0, None),
        (0.0, 20.0, AuthenticationError),
        (70.0, 70.0, RedisConnectionError),
    ],
)
def test_the_time_for_a_login_begins_with_its_first_refusal(
    monkeypatch: pytest.MonkeyPatch, back_s: float, user_s: float, fails: type[Exception] | None
) -> None:
    """Redis is back after `back_s`, and has the user after `user_s`."""
    clock = [1000.0]

    def pass_time(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr("controlplane.wire.redis_clients.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("controlplane.wire.redis_clients.time.sleep", pass_time)

    def attempt() -> str:
        passed = clock[0] - 1000.0
        if passed < back_s:
            raise RedisConnectionError("away")
        if passed < user_s:
            raise AuthenticationError("no such user")
        return "done"

    errors = (RedisConnectionError,)
    if fails is None:
        assert redis_clients._wait_out(attempt, errors) == "done"
    else:
        with pytest.raises(fails):
            redis_clients._wait_out(attempt, errors)
