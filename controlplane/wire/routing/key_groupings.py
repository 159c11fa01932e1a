"""The key groupings by name, as a route carries them; what they do is in the pipeline."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class KeyGrouping:
    """A key grouping: its name, title, effect, and whether it depends on the key only."""

    name: str
    title: str
    about: str
    by_key: bool


HASH: Final = "hash"
KEY_GROUPINGS: Final[Mapping[str, KeyGrouping]] = MappingProxyType(
    {
        grouping.name: grouping
        for grouping in (
            KeyGrouping(HASH, "by hash", "each key has one task", by_key=True),
            KeyGrouping(
                "two_choices", "by two choices",
                "the records of a key go to the less loaded of two tasks", by_key=False,
            ),
        )
    }
)  # fmt: skip


def key_grouping_text(name: str) -> str:
    """Return a key grouping as a route has it: empty for the hash, which needs no word."""
    return "" if name in ("", HASH) else json.dumps({"kind": name})


def key_grouping_name(text: str, *, aggregated: bool) -> str:
    """Return the name of a key grouping in a route; "" for a query without aggregator."""
    if text:
        name: str = json.loads(text)["kind"]
        return name
    return HASH if aggregated else ""


def splits_keys(name: str) -> bool:
    """Return whether a key may have several tasks under a key grouping, "" for the hash."""
    return bool(name) and not KEY_GROUPINGS[name].by_key
