"""The bounds of every request, in one place; controlplane.processes.serving enforces them.

All clients without a session or token share the bounds of one user; their requests wait by address.
"""

from dataclasses import dataclass
from typing import Final

from algorithms.strict_json import JsonLimits

MIB: Final = 2**20

# Values of a JSON body that the web process parses, and items of a list of rows in it: a bulk of
# 10,000 queries has 150,000 values. Nothing else runs while a parser or validator does.
JSON_BODY: Final = JsonLimits(values=250_000)
MAX_ROWS: Final = 20_000
# Faults of a body that are reported one by one: two of each query of a bulk.
MAX_FAULTS: Final = 20_000

# The head of a request. From the connection, or the first byte of a further request, to the end of
# the headers (s).
HEAD_S: Final = 10.0
# URL, headers and what arrives with them in one read of the socket (bytes).
MAX_HEAD: Final = 64 * 1024
MAX_URL: Final = 16 * 1024
MAX_HEADERS: Final = 32 * 1024
MAX_HEADER_COUNT: Final = 100
# Connections and requests of a process, and connections of one address that is not a trusted proxy:
# idle ones and half-sent heads cost their client nothing.
MAX_CONNECTIONS: Final = 2000
MAX_CONNECTIONS_OF_ADDRESS: Final = 500
# Bodies of all requests of a process, from the first byte to the response (bytes).
MAX_HELD: Final = 320 * MIB
# A larger body has a lane of its own: to parse it takes so much memory and time (bytes).
HEAVY_BODY: Final = MIB
# Seconds after which a refused client may try again.
AGAIN_S: Final = 5
# The longest response that is sent part by part (s): a file, or a feed.
STREAM_S: Final = 3600.0
# The user of a session or token is looked up again after this time (s).
OWNER_S: Final = 60.0
MAX_OWNERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits of a body: bytes with and without a valid session or token, and time.

    A body has `body_s` seconds and one more per `least_rate` bytes.
    """

    known_bytes: int
    anonymous_bytes: int = 64 * 1024
    body_s: float = 15.0
    least_rate: int = 64 * 1024
    held_bytes: int = MAX_HELD


@dataclass(frozen=True, slots=True)
class Lane:
    """Threads for one kind of requests, and how many wait for them, for how long (s).

    `waiting`: of one user, or one address; `waiting_of_share`: of all clients without a session or
    token. `cpu_s`, `wall_s`: processor time and time of a request in its thread, of a part if the
    response is sent in parts; a busy machine reaches the second one first. `is_anonymous`: cookies
    are left out, so no session is read from the database.
    """

    name: str
    threads: int
    waiting: int = 100
    waiting_of_share: int = 200
    wait_s: float = 30.0
    cpu_s: float = 20.0
    wall_s: float = 60.0
    is_anonymous: bool = False


# Probes wait for no one else.
HEALTH: Final = Lane("health", 1, waiting=500, waiting_of_share=1000, is_anonymous=True)
READINESS: Final = Lane("readiness", 1, waiting=500, waiting_of_share=1000, is_anonymous=True)
# A process parses one large body at a time. Children decode records, and logs may not answer.
HEAVY: Final = Lane("heavy", 1, waiting=20)
RECORDS: Final = Lane("records", 2, waiting=20)
# A hash takes half a second of a core: the last of the line waits for ten seconds.
LOGINS: Final = Lane("logins", 1, waiting=10, waiting_of_share=20)
# These wait for a provider of single sign-on, which may not answer.
SIGN_ON: Final = Lane("sign-on", 2, waiting=10, waiting_of_share=20)
OWNERS: Final = Lane("owners", 1, waiting=200, waiting_of_share=400)
