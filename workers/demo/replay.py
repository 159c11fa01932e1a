"""Replay the recorded day into a cluster: streams, reports, and the queries of the trips.

python -m workers.demo.replay --cluster sf --url http://127.0.0.1:8000 --token-file F --redis-url U
"""

import argparse
import logging
import signal
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Final, TypeVar

import httpx
import redis

from controlplane.wire.producer import Producer
from workers.demo.api import Refused, WeirApi
from workers.demo.feed import TICK_S, Feed
from workers.demo.keeper import QueryKeeper
from workers.demo.long_lived import draw_long_lived
from workers.demo.place import StoredMoment
from workers.demo.recording import Recording, load_recording
from workers.demo.timeline import Wanted, trips_at

logger = logging.getLogger(__name__)

# Half a second, doubled up to half a minute: quick at start-up, quiet in an outage.
_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 30.0
_REQUEST_TIMEOUT_S: Final = 30.0
# A runner kills what has not ended soon after SIGTERM; an unanswered request is no loss.
_FAREWELL_S: Final = 3.0
T = TypeVar("T")

PREFIXES: Final = ("trip-", "mouse-")


class TokenFile(httpx.Auth):
    """Sends the token in a file, read for each request: it may be written, or renewed, later."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header; without a token the API answers 401 and the caller tries again."""
        if self._path.exists():
            request.headers["Authorization"] = f"Bearer {self._path.read_text().strip()}"
        yield request


def main() -> None:
    """Run until SIGTERM, SIGINT or the time limit."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    arguments = _parser().parse_args()
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    auth = TokenFile(arguments.token_file)
    limit_s = None if arguments.limit_minutes is None else 60 * arguments.limit_minutes
    with (
        httpx.Client(base_url=arguments.url, auth=auth, timeout=_REQUEST_TIMEOUT_S) as client,
        Producer(arguments.redis_url, arguments.cluster) as producer,
    ):
        place = StoredMoment(redis.Redis.from_url(arguments.redis_url), arguments.cluster)
        api = WeirApi(client, arguments.cluster)
        replay(api, producer, place, stop, arguments.speed, arguments.queries, limit_s)


def replay(
    api: WeirApi,
    producer: Producer,
    place: StoredMoment,
    stop: Event,
    speed: float,
    queries: int,
    limit_s: float | None = None,
) -> None:
    """Register the streams, then feed reports and keep queries until `stop` or the limit.

    The queries are kept by a thread of their own: reports flow on while the web is away.
    """
    recording = load_recording()
    declarations = [tile.declaration(speed) for tile in recording.tiles]
    streams = persistently(lambda: api.register(declarations), stop)
    if streams is None:
        return
    feed = Feed(recording, streams, producer, place, speed)
    logger.info("%d streams registered; replaying from moment %d", len(streams), feed.moment)
    long_lived = draw_long_lived(queries, [tile.name for tile in recording.tiles])
    keeper = QueryKeeper(api, PREFIXES)
    keeping = Thread(
        target=keep_queries,
        args=(keeper, lambda: wanted(recording, long_lived, feed), stop),
        daemon=True,
    )
    keeping.start()
    limit = _stopping_after(limit_s, stop)
    try:
        feed.run(stop)
    finally:
        limit.cancel()
        stop.set()
        keeping.join(_FAREWELL_S)
    logger.info("stopped at moment %d", feed.moment)


def wanted(recording: Recording, long_lived: Sequence[Wanted], feed: Feed) -> list[Wanted]:
    """Return the queries that should live now."""
    return [*long_lived, *trips_at(recording, feed.moment)]


def keep_queries(
    keeper: QueryKeeper, wanted_now: Callable[[], Sequence[Wanted]], stop: Event
) -> None:
    """Step the keeper every tick until `stop`; after a failure with growing pauses."""
    try:
        while not stop.wait(TICK_S):
            persistently(lambda: keeper.step(wanted_now()), stop)
    finally:
        # Reports without queries would be half a replay: let the process end and be restarted.
        stop.set()


def persistently(ask: Callable[[], T], stop: Event) -> T | None:
    """Return the answer, asking until there is one, with growing pauses; None when stopped."""
    pause = _FIRST_WAIT_S
    while not stop.is_set():
        try:
            return ask()
        except (httpx.HTTPError, Refused) as error:
            logger.warning("asking again in %g s: %s", pause, error)
        stop.wait(pause)
        pause = min(2 * pause, _LONGEST_WAIT_S)
    return None


def _stopping_after(limit_s: float | None, stop: Event) -> Timer:
    """Return a timer, running if there is a limit, that ends the replay."""
    timer = Timer(limit_s or 0.0, stop.set)
    timer.daemon = True
    if limit_s is not None:
        timer.start()
    return timer


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cluster", default="sf", help="slug of the cluster")
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="where Weir's web answers")
    parser.add_argument(
        "--token-file", type=Path, required=True, help="file of an operator's token"
    )
    parser.add_argument("--redis-url", required=True, help="Redis of the cluster's log")
    parser.add_argument("--speed", type=_positive, default=60.0, help="recorded over real seconds")
    parser.add_argument("--queries", type=_count, default=0, help="additional long-lived queries")
    parser.add_argument("--limit-minutes", type=_positive, help="end after so many real minutes")
    return parser


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be positive, not {text}")
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, not {text}")
    return number


if __name__ == "__main__":
    main()
