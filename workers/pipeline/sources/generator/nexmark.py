"""Events of NEXMark as functions of a seed and their number.

Source: Tucker, Tufte, Papadimos, Maier, "NEXMark: a benchmark for queries over data streams", with
the shares, identifiers and hot keys of the generator of Apache Beam. Of 50 consecutive events the
first is a person, the next 3 are auctions, the others bids.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from controlplane.wire.sources.generator import EventKind

Array = np.ndarray[Any, Any]
EPOCH: Final = 50
# By kind: the place of the first event of an epoch, and how many it has.
PLACES: Final = MappingProxyType(
    {EventKind.PERSON: (0, 1), EventKind.AUCTION: (1, 3), EventKind.BID: (4, 46)}
)
_FIRST_ID, _FIRST_CATEGORY, _CATEGORIES = 1_000, 10, 5
# One of so many identifiers is hot; auctions and persons that are still active.
_HOT_EVERY, _ACTIVE = 100, 1_000
_MOST_EXPIRY_MS: Final = 20 * 60 * 1000
_FIRST: Final = [
    "Peter",
    "Paul",
    "Luke",
    "John",
    "Saul",
    "Vicky",
    "Kate",
    "Julie",
    "Sarah",
    "Deiter",
    "Walter",
]
_LAST: Final = [
    "Shultz",
    "Abrams",
    "Spencer",
    "White",
    "Bartels",
    "Walton",
    "Smith",
    "Jones",
    "Noris",
]
_CITIES: Final = (
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle",
    "Kent", "Cheyenne",
)  # fmt: skip
_STATES: Final = ["AZ", "CA", "ID", "OR", "WA", "WY"]
_CHANNELS: Final = ["Google", "Facebook", "Baidu", "Apple"]
_ITEMS: Final = [
    "chair",
    "table",
    "lamp",
    "clock",
    "vase",
    "mirror",
    "carpet",
    "painting",
    "guitar",
    "camera",
]


class Events(NamedTuple):
    """Events of one kind: their numbers among all events, their times, and the seed."""

    seed: int
    numbers: Array
    times_ms: Array

    def uniform(self, purpose: int) -> Array:
        """Return a number in [0, 1) for each event, which depends on the purpose."""
        return np.asarray((self.bits(purpose) >> np.uint64(11)) * 2.0**-53)

    def below(self, purpose: int, stop: Any) -> Array:
        """Return a whole number from 0 to below `stop` for each event."""
        return np.asarray((self.uniform(purpose) * stop).astype(np.int64))

    def bits(self, purpose: int) -> Array:
        """Return 64 bits for each event (SplitMix64 of seed, purpose and number)."""
        with np.errstate(over="ignore"):
            key = _mixed(_mixed(np.array([self.seed], np.uint64)) + np.uint64(purpose))
            return _mixed(_mixed(self.numbers.astype(np.uint64)) ^ key)


def _mixed(values: Array) -> Array:
    with np.errstate(over="ignore"):
        z = values + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def count_of(kind: EventKind, events: int) -> int:
    """Return how many of the first events are of a kind."""
    first, share = PLACES[kind]
    epochs, rest = divmod(events, EPOCH)
    return epochs * share + min(max(rest - first, 0), share)


def numbers_of(kind: EventKind, places: Array) -> Array:
    """Return the numbers among all events of the n-th events of a kind, from 0."""
    first, share = PLACES[kind]
    return np.asarray(places // share * EPOCH + first + places % share)


def batch_of(kind: EventKind, events: Events, schema: Any) -> pa.RecordBatch:
    """Return events as records with the columns of a schema of Arrow."""
    columns = _COLUMNS[kind]
    arrays = [pa.array(columns[field.name](events)).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _newest_person(events: Events) -> Array:
    return np.asarray(events.numbers // EPOCH)


def _newest_auction(events: Events) -> Array:
    """Return the index of the newest auction before each bid, or of the auction itself."""
    return np.asarray(events.numbers // EPOCH * 3 + np.minimum(events.numbers % EPOCH, 3) - 1)


def _reference(events: Events, newest: Array, purpose: int, hot: float) -> Array:
    """Return identifiers of earlier events: a share `hot` of the newest hot one."""
    is_hot = events.uniform(purpose) < hot
    hottest = newest // _HOT_EVERY * _HOT_EVERY
    any_one = newest - events.below(purpose + 1, np.minimum(newest + 1, _ACTIVE))
    return np.asarray(np.where(is_hot, hottest, any_one) + _FIRST_ID)


def _amount(events: Events, purpose: int) -> Array:
    return np.asarray(np.round(10 ** (events.uniform(purpose) * 6) * 100).astype(np.int64))


def _one_of(names: Sequence[str], purpose: int) -> Callable[[Events], Any]:
    return lambda events: pa.array(names).take(events.below(purpose, len(names)))


def _joined(separator: str, *parts: Any) -> Any:
    texts = [part if isinstance(part, pa.Array) else pa.array(part) for part in parts]
    join: Any = pc.binary_join_element_wise
    return join(*[text.cast(pa.string()) for text in texts], separator)


def _name(events: Events) -> Any:
    return _joined(" ", _one_of(_FIRST, 1)(events), _one_of(_LAST, 2)(events))


def _email(events: Events) -> Any:
    return _joined("@", pc.replace_substring(pc.utf8_lower(_name(events)), " ", "."),
                   np.char.add(events.below(3, 1_000).astype(str), ".example"))  # fmt: skip


def _card(events: Events) -> Any:
    groups = [np.char.zfill(events.below(4 + n, 10_000).astype(str), 4) for n in range(4)]
    return _joined(" ", *groups)


def _url(events: Events) -> Any:
    path = _joined("/", np.full(len(events.numbers), "https://auction.example"),
                   events.below(33, 10_000), events.below(34, 10_000))  # fmt: skip
    return _joined("/item.htm?channel=", path, _one_of(_CHANNELS, 32)(events))


def _expires(events: Events) -> Any:
    return _time(events._replace(times_ms=events.times_ms + 1 + events.below(20, _MOST_EXPIRY_MS)))


def _time(events: Events) -> Any:
    return pa.array(events.times_ms, pa.int64()).cast(pa.timestamp("ms", "UTC"))


_COLUMNS: Final[Mapping[EventKind, Mapping[str, Callable[[Events], Any]]]] = MappingProxyType({
    EventKind.PERSON: {
        "id": lambda e: _newest_person(e) + _FIRST_ID, "name": _name, "email_address": _email,
        "credit_card": _card, "city": _one_of(_CITIES, 8), "state": _one_of(_STATES, 9),
        "date_time": _time,
    },
    EventKind.AUCTION: {
        "id": lambda e: _newest_auction(e) + _FIRST_ID, "item_name": _one_of(_ITEMS, 16),
        "description": _one_of([f"a {name} in good condition" for name in _ITEMS], 17),
        "initial_bid": lambda e: _amount(e, 18),
        "reserve": lambda e: _amount(e, 18) + _amount(e, 19), "date_time": _time,
        "expires": _expires, "seller": lambda e: _reference(e, _newest_person(e), 21, 0.75),
        "category": lambda e: e.below(23, _CATEGORIES) + _FIRST_CATEGORY,
    },
    EventKind.BID: {
        "auction": lambda e: _reference(e, _newest_auction(e), 28, 0.5),
        "bidder": lambda e: _reference(e, _newest_person(e), 30, 0.75),
        "price": lambda e: _amount(e, 35), "channel": _one_of(_CHANNELS, 32), "url": _url,
        "date_time": _time,
    },
})  # fmt: skip
