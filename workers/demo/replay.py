"""Replay demonstrations into their clusters: streams, records and queries.

REDIS_URL=… python -m workers.demo.replay --demos sf,web --token-file F
"""

import argparse
import logging
import signal
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Final, TypeVar, cast

import httpx
import redis

from controlplane.formats.log_lines import write_log_to_stderr
from controlplane.installation.env import redis_url
from controlplane.processes.runtime.beats import beat
from controlplane.processes.runtime.process_kinds import REPLAYER
from controlplane.wire.errors import LogFull, LogUnavailable
from controlplane.wire.keys import cluster_prefix
from controlplane.wire.producer import Producer
from controlplane.wire.redis_clients import connect_patiently
from workers.demo.keeper import QueryKeeper, RequestRejected, WeirApi
from workers.demo.program import Program, ProgramQuery
from workers.demo.scenarios import OF_KEYS, Disturbances, DisturbedRecords
from workers.demo.taxis import Taxis
from workers.demo.web.program import Web

TICK_S: Final = 0.5
# The interval of looks at scenarios and at the wanted queries, each a request.
LOOK_S: Final = 2.0
# After a pause (a full log, a sleeping laptop) the replay continues from where it was instead of
# rushing through what it missed.
LONGEST_STEP_S: Final = 2.0
_RETRY_S: Final = 2.0
logger = logging.getLogger(__name__)

# Half a second, doubled up to half a minute: quick at start-up, quiet in an outage.
_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 30.0
_REQUEST_TIMEOUT_S: Final = 30.0
# A runner kills a process soon after SIGTERM; an unanswered request is not a loss.
_FAREWELL_S: Final = 3.0
T = TypeVar("T")

# The interval of checks whether the demo's cluster exists.
_NO_CLUSTER_S: Final = 2.0
# By the slug of their cluster.
PROGRAMS: Final[Mapping[str, Callable[[argparse.Namespace], Program]]] = {
    "sf": lambda arguments: Taxis(arguments.speed, arguments.long_lived),
    "web": lambda arguments: Web(arguments.speed),
}


def next_moment(moment: int, elapsed_s: float, speed: float) -> int:
    """Return the moment that is reached `elapsed_s` seconds of wall-clock time later."""
    return moment + round(min(max(elapsed_s, 0.0), LONGEST_STEP_S) * speed * 1000)


class StoredMoment:
    """The moment up to which records are in the log, stored in Redis."""

    def __init__(self, client: "redis.Redis", cluster: str) -> None:
        self._client = client
        self._key = f"{cluster_prefix(cluster)}replay"

    def read(self) -> int:
        """Return the moment, before the first record if none is stored."""
        stored = cast("bytes | None", self._client.get(self._key))
        return -1 if stored is None else int(stored)

    def write(self, moment: int) -> None:
        """Store the moment."""
        self._client.set(self._key, moment)


class Feed:
    """Advances the replay, one atomic append per tick.

    The moment is stored after the append, so that a kill in between repeats one tick of records and
    loses none.
    """

    def __init__(
        self,
        program: Program,
        streams: Mapping[str, int],
        producer: Producer,
        place: StoredMoment,
        speed: float,
        disturbances: Disturbances | None = None,
    ) -> None:
        """Feed a program's records into its streams, whose ids are given by name."""
        self._disturbances = disturbances or Disturbances()
        self._disturbed = DisturbedRecords(program.key)
        self._program = program
        self._streams = streams
        self._producer = producer
        self._place = place
        self._speed = speed
        self.moment = place.read()

    def advance(self, elapsed_s: float) -> None:
        """Append the records of the elapsed time.

        Raises `LogFull`, `LogUnavailable` or `redis.RedisError`; the moment does not advance then.
        """
        until = next_moment(self.moment, elapsed_s, self._speed)
        now = datetime.now(UTC)
        recorded = self._program.records_between(self.moment, until)
        records = self._disturbed.of(recorded, self._disturbances.now(now), now)
        self._producer.append({self._streams[name]: batch for name, batch in records.items()})
        self.moment = until
        self._place.write(until)

    def run(self, stop: Event, clock: Callable[[], float] = time.monotonic) -> None:
        """Advance every tick until `stop` is set; waits while the log is full or away."""
        last = clock()
        while not stop.wait(TICK_S):
            now = clock()
            try:
                self.advance(now - last)
            except (LogFull, LogUnavailable, redis.RedisError) as error:
                logger.warning("the log takes nothing now: %s", error)
                stop.wait(_RETRY_S)
            last = now


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
    write_log_to_stderr()
    logging.getLogger("httpx").setLevel(logging.WARNING)
    arguments = _parser().parse_args()
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    limit = _stopping_after(arguments.limit_minutes, stop)
    client = connect_patiently(redis_url())
    with ThreadPoolExecutor(len(arguments.demos)) as pool:
        replays = [pool.submit(replay_one, slug, arguments, stop) for slug in arguments.demos]
        # A failed replay ends the others, so that the process is restarted.
        while not wait(replays, REPLAYER.period_s, FIRST_EXCEPTION).done and not stop.is_set():
            _beat(client)
        stop.set()
    limit.cancel()
    for item in replays:
        item.result()


def _beat(client: "redis.Redis") -> None:
    with suppress(redis.RedisError):
        beat(client, REPLAYER.name)


def replay_one(slug: str, arguments: argparse.Namespace, stop: Event) -> None:
    """Replay one program as soon as its cluster exists, until `stop`."""
    auth = TokenFile(arguments.token_file)
    with (
        httpx.Client(base_url=arguments.url, auth=auth, timeout=_REQUEST_TIMEOUT_S) as client,
        Producer(redis_url(), slug) as producer,
    ):
        store = connect_patiently(redis_url())
        place = StoredMoment(store, slug)
        api = WeirApi(client, slug)
        while not persistently(api.exists, stop):
            if stop.wait(_NO_CLUSTER_S):
                return
        # A recording takes much memory.
        replay(PROGRAMS[slug](arguments), api, producer, place, stop, arguments.speed)


def replay(
    program: Program,
    api: WeirApi,
    producer: Producer,
    place: StoredMoment,
    stop: Event,
    speed: float,
) -> None:
    """Register the streams, then feed records and keep queries until `stop`.

    The queries are kept by a thread of their own: records flow on while the web is away.
    """
    streams = persistently(lambda: api.register(program.declarations()), stop)
    if streams is None:
        return
    disturbances = Disturbances()
    feed = Feed(program, streams, producer, place, speed, disturbances)
    logger.info("%s: %d streams registered, moment %d", program.slug, len(streams), feed.moment)
    keeper = QueryKeeper(api, program.prefixes)

    def wanted() -> Sequence[ProgramQuery]:
        disturbances.listed = api.disturbances()
        is_by_key = bool(OF_KEYS & disturbances.kinds(datetime.now(UTC)))
        own = program.queries_by_key() if is_by_key else ()
        return [*program.queries_at(feed.moment), *own]

    queries = Thread(target=keep_queries, args=(keeper, wanted, stop), daemon=True)
    queries.start()
    try:
        feed.run(stop)
    finally:
        stop.set()
        queries.join(_FAREWELL_S)
    logger.info("%s: stopped at moment %d", program.slug, feed.moment)


def keep_queries(
    keeper: QueryKeeper,
    wanted_now: Callable[[], Sequence[ProgramQuery]],
    stop: Event,
) -> None:
    """Step the keeper every `LOOK_S` until `stop`; after a failure with growing pauses."""
    try:
        while not stop.wait(LOOK_S):
            persistently(lambda: keeper.step(wanted_now()), stop)
    finally:
        # Records without queries would be half a replay: the process ends and is restarted.
        stop.set()


def persistently(ask: Callable[[], T], stop: Event) -> T | None:
    """Return the answer, retrying with growing pauses; None when stopped."""
    pause = _FIRST_WAIT_S
    while not stop.is_set():
        try:
            return ask()
        except (httpx.HTTPError, RequestRejected) as error:
            logger.warning("asking again in %g s: %s", pause, error)
        stop.wait(pause)
        pause = min(2 * pause, _LONGEST_WAIT_S)
    return None


def _stopping_after(minutes: float | None, stop: Event) -> Timer:
    """Return a timer, started if there is a limit, that ends the replay."""
    timer = Timer(60 * (minutes or 0.0), stop.set)
    timer.daemon = True
    if minutes is not None:
        timer.start()
    return timer


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--demos", type=_demos, default=("sf",), help=f"which of {', '.join(PROGRAMS)}, by commas"
    )
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="where Weir's web answers")
    parser.add_argument(
        "--token-file", type=Path, required=True, help="file of an operator's token"
    )
    parser.add_argument("--speed", type=_positive, default=10.0, help="recorded over real seconds")
    parser.add_argument(
        "--long-lived", type=_count, default=0, help="long-lived queries of sf beside its trips"
    )
    parser.add_argument("--limit-minutes", type=_positive, help="end after so many real minutes")
    return parser


def _demos(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    unknown = [name for name in names if name not in PROGRAMS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(PROGRAMS)}")
    return names


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
