"""Leases of several processes in a real Redis: each name has one holder, whatever is lost."""

import threading
from pathlib import Path

import pytest
import redis

from controlplane.processes.runtime.leases import Leases, holder_of, identity_of
from tests.support.redis_server import RedisServer

NAMES = [f"c{number}" for number in range(5)]


@pytest.fixture
def url(redis_url: str) -> str:
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    return redis_url


def leases(url: str, holder: str, term_s: float = 60.0, place: str = "-") -> Leases:
    return Leases(url, "agent", holder, place=place, term_s=term_s, alone_s=term_s)


def expire(url: str) -> None:
    """End the terms of all leases and members, as time does."""
    with redis.Redis.from_url(url, decode_responses=True) as client:
        client.delete("weir:members:agent")
        for name, row in client.hgetall("weir:leases:agent").items():
            client.hset("weir:leases:agent", name, f"{row.rpartition(' ')[0]} 1")


def test_a_name_has_one_holder_and_the_next_one_another_epoch(url: str) -> None:
    first, second = leases(url, "a"), leases(url, "b")
    held = first.step(["x"])
    assert second.step(["x"]) == {}
    assert first.step(["x"]) == held
    first.leave()
    assert second.step(["x"])["x"] > held["x"]
    assert first.step(["x"]) == {}


def test_a_term_that_ended_is_for_the_taking_and_its_holder_learns_it(url: str) -> None:
    first, second = leases(url, "a"), leases(url, "b")
    held = first.step(["x"])
    expire(url)
    assert second.step(["x"])["x"] > held["x"]
    with redis.Redis.from_url(url) as client, client.pipeline() as pipe:
        assert not first.is_current(pipe, "x")
    with redis.Redis.from_url(url) as client, client.pipeline() as pipe:
        assert second.is_current(pipe, "x")
    assert first.step(["x"]) == {}


def test_a_restarted_holder_continues_its_epoch(url: str) -> None:
    held = leases(url, "a").step(["x"])
    assert leases(url, "a").step(["x"]) == held


def test_a_holder_counts_its_own_time(url: str) -> None:
    """It ends its work before the term ends in Redis."""
    short = leases(url, "a", term_s=0.0)
    assert short.step(["x"]) == {}
    assert leases(url, "b").step(["x"])


def test_a_redis_without_its_data_leaves_leases_with_their_holders(url: str) -> None:
    first, second = leases(url, "a"), leases(url, "b")
    held = first.step(["x"])
    with redis.Redis.from_url(url) as client:
        client.flushall()
    assert first.step(["x"]) == held
    assert second.step(["x"]) == {}


def test_two_members_share_names(url: str) -> None:
    first, second = leases(url, "a"), leases(url, "b")
    first.step([])
    second.step([])
    assert len(first.step(NAMES)) == 3
    assert len(second.step(NAMES)) == 2
    assert first.held().keys() | second.held().keys() == set(NAMES)
    expire(url)
    assert second.step(NAMES).keys() == set(NAMES), "the first one is gone"


def test_who_has_more_than_its_share_gives_up_what_is_idle(url: str) -> None:
    first, second = leases(url, "a"), leases(url, "b")
    assert len(first.step(NAMES)) == 5
    assert second.step(NAMES) == {}
    # Who renews learns of the second one.
    first.step(NAMES)
    assert first.step(NAMES, idle=["c1", "c4", "c2"]).keys() == {"c0", "c2", "c3"}
    assert second.step(NAMES).keys() == {"c1", "c4"}
    assert len(first.step(NAMES, idle=["c0"])) == 3


def test_processes_with_another_place_hold_nothing(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = leases(url, "a", place="p"), leases(url, "b", place="q")
    first.step(["x"])
    for _ in range(2):
        assert second.step(["x", "y"]) == {}
    assert [row.levelname for row in caplog.records if row.levelname != "INFO"] == ["ERROR"]
    first.leave()
    assert second.step(["x", "y"]).keys() == {"x", "y"}


def test_a_holder_that_is_restarted_with_another_place_continues(url: str) -> None:
    """At once, and with another epoch: what it started may still run at the first place."""
    held = leases(url, "a", place="p").step(["x"])
    moved, other = leases(url, "a", place="q"), leases(url, "b", place="q")
    assert moved.step(["x"])["x"] > held["x"]
    assert other.step(["x", "y"]).keys() == {"y"}


@pytest.mark.parametrize("value", [b"", b"a", b"a b c", b"a 1", b"\xff\xfe 1 2", b"a 1 2 3"])
def test_values_of_others_are_no_leases(url: str, value: bytes) -> None:
    with redis.Redis.from_url(url) as client:
        client.hset("weir:leases:agent", "x", value)
        assert leases(url, "a").step(["x"]).keys() == {"x"}
        client.flushall()
        client.set("weir:leases:agent", value)
        client.set("weir:members:agent", value)
        assert leases(url, "a").step(["x"]).keys() == {"x"}


def test_a_redis_that_is_away_changes_nothing_within_the_term(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server:
        mine = leases(server.url, "a")
        held = mine.step(["x"])
        server.kill()
        assert mine.step(["x"]) == held
        mine._sent_at = float("-inf")
        mine.renew()
        assert mine.held() == held
        server.start()
        assert mine.step(["x"]) == held


def test_all_users_of_a_folder_read_one_identity(tmp_path: Path) -> None:
    read: list[str] = []
    threads = [
        threading.Thread(target=lambda: read.append(identity_of(tmp_path / "data")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read) == 8
    assert len(set(read)) == 1
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["identity"]
    assert holder_of(tmp_path / "data").endswith(f":{read[0]}")
