"""What a search returns, and how well a name matches the words of a search."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

# Hits of one kind; the best of them are returned.
MAX_PER_KIND: Final = 6


class HitKind(StrEnum):
    """The kind of an object with a name."""

    CLUSTER = "cluster"
    NODE = "node"
    STREAM = "stream"
    QUERY = "query"
    PROPOSAL = "proposal"
    EXPERIMENT = "experiment"


class Match(IntEnum):
    """How a name contains the text of a search; the better one is smaller."""

    WHOLE = 0
    START = 1
    START_OF_WORD = 2
    INSIDE = 3


@dataclass(frozen=True)
class Hit:
    """An object that a search found.

    `key`: what its address names: the slug of a cluster, the index of a node, an id, or
    planner/name of an experiment. `cluster`, `cluster_name`: slug and name of its cluster, "" for
    none. `detail`: its state or number, for people. `match`: how well the name matches.
    """

    kind: HitKind
    name: str
    key: str
    match: Match
    cluster: str = ""
    cluster_name: str = ""
    detail: str = ""


def match_of(name: str, words: list[str]) -> Match | None:
    """Return how a name matches words, which all have to occur in it; None if one does not."""
    folded, text = name.casefold(), " ".join(words)
    if any(word not in folded for word in words):
        return None
    if folded == text:
        return Match.WHOLE
    if folded.startswith(text):
        return Match.START
    parts = folded.replace("-", " ").replace("_", " ").replace(".", " ").split()
    if all(any(part.startswith(word) for part in parts) for word in words):
        return Match.START_OF_WORD
    return Match.INSIDE
