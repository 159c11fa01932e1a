"""The background thread that sends queued events, with retries.

One message at a time and in order: a message without an answer is sent again unchanged, and Weir
stores each (run, batch) once.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import random
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable
from http.client import HTTPException
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from .events import IDLE, PROGRESS, Event

_log = logging.getLogger("weir.attach")

PATH: Final = "/api/v1/attached/events"
TIMEOUT_SECONDS: Final = 10.0
_ERROR_BYTES: Final = 300
EVERY_SECONDS: Final = 2.0
# Without events: a job without a report for three minutes is lost for Weir.
BEAT_SECONDS: Final = 30.0
FIRST_RETRY_SECONDS: Final = 1.0
LONGEST_RETRY_SECONDS: Final = 60.0
MOST_SENT: Final = 200
MOST_SENT_CHARS: Final = 256 * 1024
# An event with twenty long source descriptions stays below this.
MOST_EVENT_CHARS: Final = 64 * 1024

# With 2 KB an event about 2 MB of the job's memory while Weir is unreachable.
MOST_EVENTS: Final = 1000
_REFUSED: Final = (401, 403)
# The message is invalid and would be rejected again.
_SPOILED: Final = (400, 413, 422)
# The message causes an error in Weir: after so many attempts (some minutes) it is dropped, so that
# later messages are sent.
_STUMBLED: Final = 500
_MOST_STUMBLES: Final = 8


class Unreachable(Exception):
    """No answer came; str() is the reason."""


class ServerResponse(NamedTuple):
    """A status and, for a refusal, the start of the body."""

    status: int
    reason: str = ""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would take the token to another address, and turn the POST into a GET."""

    def redirect_request(self, *parts: Any, **named: Any) -> None:
        return None


class Poster:
    """Sends JSON bodies with a bearer token; raises ValueError for an unusable url or token."""

    def __init__(self, url: str, token: str, timeout: float = TIMEOUT_SECONDS) -> None:
        parts = urlsplit(url.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the url of Weir must begin with https:// or http://")
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise ValueError("the token of Weir is empty or no token")
        self.address = url.strip().rstrip("/") + PATH
        self.plain = parts.scheme == "http" and not _is_this_machine(parts.hostname)
        self._token = token
        self._timeout = timeout
        self._opener = urllib.request.build_opener(_NoRedirects)

    def __call__(self, body: bytes) -> ServerResponse:
        """Return the answer; raises `Unreachable`."""
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
            self.address,
            data=body,
            headers={
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/json",
                "User-Agent": "weir-attach/1",
            },
            method="POST",
        )
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return ServerResponse(int(answer.status))
        except urllib.error.HTTPError as refusal:
            with refusal:
                return ServerResponse(refusal.code, _body_of(refusal))
        except (OSError, HTTPException, ValueError) as failure:
            raise Unreachable(str(failure) or type(failure).__name__) from None


def _body_of(refusal: urllib.error.HTTPError) -> str:
    try:
        return refusal.read(_ERROR_BYTES).decode("utf-8", "replace")
    except (OSError, HTTPException, ValueError):
        return ""


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# No answer came.
NOBODY: Final = ServerResponse(0)


class EventQueue:
    """A queue of JSON texts that drops the oldest one when it is full, and counts; thread-safe."""

    def __init__(self, most: int = MOST_EVENTS) -> None:
        self._most = most
        self._lock = threading.Lock()
        # (text, whether it is dropped first): a gap in a chart is better than a lost start or end
        # of a query.
        self._events: deque[tuple[str, bool]] = deque()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._events)

    def put(self, text: str, *, passing: bool) -> None:
        """Add an event; a full queue drops its oldest passing one, else its oldest."""
        with self._lock:
            if len(self._events) >= self._most:
                self._drop()
            self._events.append((text, passing))

    def take(self, most: int, most_chars: int) -> list[str]:
        """Remove and return the oldest events, at least one if there is any."""
        taken: list[str] = []
        size = 0
        with self._lock:
            while self._events and len(taken) < most:
                size += len(self._events[0][0])
                if taken and size > most_chars:
                    break
                taken.append(self._events.popleft()[0])
        return taken

    def give_up(self, count: int) -> None:
        """Count removed events that could not be delivered."""
        with self._lock:
            self.dropped += count

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self.dropped += len(self._events)
            self._events.clear()

    def _drop(self) -> None:
        index = next((i for i, (_, passing) in enumerate(self._events) if passing), 0)
        del self._events[index]
        self.dropped += 1


def delay_before(failures: int, draw: Callable[[], float] = random.random) -> float:
    """Return the seconds before the next attempt: doubling, with jitter over the upper half.

    Many jobs lose Weir at one moment; they must not all retry at one.
    """
    most = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(failures - 1, 16))
    return most / 2 + most / 2 * draw()


def _is_taken(answer: ServerResponse) -> bool:
    return 200 <= answer.status < 300  # noqa: PLR2004 - what HTTP calls success


class JobReporter:
    """Sends the events of one job; `put` costs its caller some microseconds."""

    def __init__(
        self,
        post: Poster | Callable[[bytes], ServerResponse],
        job: dict[str, str],
        waiting: EventQueue | None = None,
        every: float = EVERY_SECONDS,
        beat: float = BEAT_SECONDS,
        delay: Callable[[int], float] = delay_before,
        complete: Callable[[str], str] = str,
    ) -> None:
        """`complete` is called in the thread with each event, before it is sent."""
        self._post = post
        self._job = json.dumps(job)
        self._waiting = EventQueue() if waiting is None else waiting
        self._every, self._beat, self._delay = every, beat, delay
        self._complete = complete
        self._closing = threading.Event()
        self._over = threading.Event()
        self._ended = False
        self._reported: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="weir-attach", daemon=True)

    @property
    def alive(self) -> bool:
        """Return whether events are still taken."""
        return not self._over.is_set()

    @property
    def dropped(self) -> int:
        """Return how many events were lost so far."""
        return self._waiting.dropped

    def start(self) -> None:
        """Start the thread; its first message registers the job with Weir."""
        if getattr(self._post, "plain", False):
            _log.warning("the url of Weir is http: the token travels unencrypted")
        self._thread.start()

    def put(self, event: Event) -> None:
        """Queue an event; no effect after the end."""
        if self._over.is_set():
            return
        text = json.dumps(event, separators=(",", ":"))
        if len(text) > MOST_EVENT_CHARS:
            self._waiting.give_up(1)
        else:
            self._waiting.put(text, passing=event["kind"] in (PROGRESS, IDLE))

    def wind_up(self, *, ended: bool) -> None:
        """Send the queued events and end the thread; `ended`: whether the job is over."""
        self._ended = ended
        self._closing.set()

    def close(self, seconds: float, *, ended: bool) -> None:
        """Wind up and wait at most `seconds`; nothing is sent after them."""
        self.wind_up(ended=ended)
        if self._thread.is_alive():
            self._thread.join(seconds)
        self._over.set()

    def _run(self) -> None:
        try:
            self._loop()
        except Exception as failure:  # noqa: BLE001 - a thread's traceback would frighten for nothing
            _log.warning("the reports to Weir have ended: %s", failure)
        finally:
            self._over.set()
            self._waiting.clear()

    def _loop(self) -> None:
        sent_at = float("-inf")
        while not self._over.is_set():
            closing = self._closing.is_set()
            due = time.monotonic() - sent_at >= self._beat
            events = self._waiting.take(MOST_SENT, MOST_SENT_CHARS)
            # The newest first, as it is the one that is looked at.
            events = [self._completed(text) for text in events[::-1]][::-1]
            if events or due or closing:
                if not self._deliver(events):
                    return
                sent_at = time.monotonic()
            if closing and not len(self._waiting):
                return
            if not len(self._waiting):
                self._closing.wait(self._every)

    def _completed(self, text: str) -> str:
        # A job that ends is not asked: each look would be into an ending JVM.
        return text if self._closing.is_set() else self._complete(text)

    def _deliver(self, events: list[str]) -> bool:
        """Send one message until it is accepted or dropped; return False to send no more."""
        failures = stumbles = 0
        while True:
            # Read first: an attempt from before the requested end is not the last one.
            last = self._closing.is_set()
            answer = self._try(self._message(events))
            stumbles += answer.status == _STUMBLED
            if answer.status in _REFUSED:
                self._warn("refused", "Weir refuses the token (%s); nothing is sent", answer.status)
                return False
            if _is_taken(answer) or answer.status in _SPOILED or stumbles == _MOST_STUMBLES:
                self._settle(answer, len(events))
                return True
            if last or self._over.is_set():
                self._waiting.give_up(len(events))
                return False
            failures += 1
            self._closing.wait(self._delay(failures))

    def _message(self, events: list[str]) -> bytes:
        ended = self._closing.is_set() and self._ended and not len(self._waiting)
        head = f'{{"job":{self._job},"dropped":{self._waiting.dropped}'
        return f'{head},"ended":{json.dumps(ended)},"events":[{",".join(events)}]}}'.encode()

    def _try(self, body: bytes) -> ServerResponse:
        """Return the answer, or `NOBODY`; an error that is worth a retry is logged once."""
        try:
            answer = self._post(body)
        except Unreachable as failure:
            self._warn("away", "Weir cannot be reached (%s); trying again quietly", failure)
            return NOBODY
        if not _is_taken(answer) and answer.status not in (*_REFUSED, *_SPOILED):
            self._warn("away", "Weir answers %s; trying again quietly", answer.status)
        return answer

    def _settle(self, answer: ServerResponse, count: int) -> None:
        if not _is_taken(answer):
            self._waiting.give_up(count)
            message = f"{answer.status} {answer.reason}"
            self._warn("spoiled", "Weir cannot read %s events and drops them: %s", count, message)

    def _warn(self, kind: str, text: str, *values: object) -> None:
        """Warn once per kind of error, as the log is the job's."""
        if kind not in self._reported:
            self._reported.add(kind)
            _log.warning(text, *values)
