"""All key groupings by name, without their code: light to import.

The text of a grouping is what a routing table carries: canonical JSON of the name and of the
parameters that differ from their defaults; empty for plain key grouping.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from algorithms.errors import BadParameters, UnknownGrouping

if TYPE_CHECKING:
    # Both need numpy, without which `weir --help` lists the names of groupings.
    from algorithms.partitioning.grouping import Grouping
    from algorithms.vocabulary import ParameterField

KEY: Final = "key"
NO_PARAMETERS: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True)
class GroupingInfo:
    """A grouping as lists and forms show it.

    `by_key`: the key alone decides, so every node computes it for itself. `needs_times`: it looks
    at the times of messages. `stateful`: its decisions depend on earlier messages.
    `path`: module and class, `module:Class`.
    """

    name: str
    title: str
    about: str
    path: str
    by_key: bool = False
    needs_times: bool = False
    stateful: bool = True

    @property
    def parameters(self) -> "type[Grouping[Any]]":
        """Return the class of the grouping, whose fields are the parameters; imports it."""
        module, _, name = self.path.partition(":")
        kind: type[Grouping[Any]] = getattr(import_module(module), name)
        return kind


def _info(name: str, title: str, about: str, path: str, **facts: bool) -> GroupingInfo:
    return GroupingInfo(name, title, about, f"algorithms.partitioning.{path}", **facts)


_INFOS: Final = (
    _info(
        KEY, "Key grouping",
        "The hash of a key names its worker: one worker per key, whatever its share.",
        "groupings.key:KeyGrouping", by_key=True, stateful=False,
    ),
    _info(
        "shuffle", "Shuffle grouping",
        "Messages go to all workers in turn: the best balance, and every key on every worker.",
        "groupings.shuffle:ShuffleGrouping",
    ),
    _info(
        "partial_key", "Partial key grouping",
        "Each key has two workers; a message goes to the less loaded of them.",
        "groupings.partial_key:PartialKeyGrouping",
    ),
    _info(
        "two_choices", "Power of two choices",
        "Each message goes to the less loaded of two workers drawn at random.",
        "groupings.two_choices:TwoChoices",
    ),
    _info(
        "random_choices", "Power of random choices",
        "Each key has a random sequence of workers; a message goes to the first with room.",
        "groupings.random_choices:RandomChoices",
    ),
    _info(
        "bounded_load", "Consistent hashing with bounded loads",
        "A message goes to the first worker with room clockwise of its key on a hash ring.",
        "groupings.bounded_load:BoundedLoad",
    ),
    _info(
        "consistent_grouping", "Consistent grouping",
        "Virtual workers of equal load move from busy workers to idle ones.",
        "consistent_grouping:ConsistentGrouping",
    ),
    _info(
        "frequency_aware", "Frequency-aware hashing",
        "The most frequent keys are divided into sub-keys, which a hash ring spreads.",
        "groupings.frequency_aware:FrequencyAware",
    ),
    _info(
        "head_aware", "Head-aware grouping",
        "Hot keys use as many workers as balance requires; other keys have one, rarely two.",
        "groupings.head_aware:HeadAware",
    ),
    _info(
        "panes", "Panes",
        "Time is cut into panes, which go to the workers in turn.",
        "groupings.panes:Panes", needs_times=True,
    ),
    _info(
        "rate_aware", "Rate-aware panes",
        "Large panes continue on the next worker; workers of small panes receive more panes.",
        "groupings.rate_aware:RateAware", needs_times=True,
    ),
)  # fmt: skip

GROUPINGS: Final[Mapping[str, GroupingInfo]] = MappingProxyType({i.name: i for i in _INFOS})


def info_of(name: str) -> GroupingInfo:
    """Return one grouping. Raises `UnknownGrouping`, which names the known ones."""
    if name not in GROUPINGS:
        raise UnknownGrouping(name, tuple(GROUPINGS))
    return GROUPINGS[name]


def fields_of(name: str) -> "tuple[ParameterField, ...]":
    """Return the parameters of a grouping. Raises `UnknownGrouping`."""
    return info_of(name).parameters.fields()


def grouping_text(name: str, parameters: Mapping[str, Any] = NO_PARAMETERS) -> str:
    """Return the text of a grouping; empty for plain key grouping.

    Raises `UnknownGrouping` or `BadParameters`.
    """
    info = info_of(name)
    if not parameters:
        return canonical_text(name, parameters)
    values = info.parameters.from_mapping(parameters).to_mapping()
    defaults = {field.name: field.default for field in info.parameters.fields()}
    changed = {key: value for key, value in values.items() if value != defaults[key]}
    return canonical_text(name, changed)


def canonical_text(name: str, parameters: Mapping[str, Any]) -> str:
    """Return the text with just these parameters, which are not checked."""
    if name == KEY and not parameters:
        return ""
    row = {"grouping": name, **parameters}
    return json.dumps(row, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parsed_text(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name of a text's grouping and the parameters that it gives.

    Raises `UnknownGrouping`, or `BadParameters` for a text that is not a JSON object. The values of
    the parameters are checked by `grouping_of`.
    """
    if not text:
        return KEY, {}
    try:
        row = json.loads(text)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise BadParameters({"grouping": [f"must be a JSON object, not {text[:80]!r}"]})
    name = row.pop("grouping", None)
    if not isinstance(name, str):
        raise BadParameters({"grouping": [f"must be the name of a key grouping, not {name!r}"]})
    return info_of(name).name, row


@cache
def grouping_of(text: str) -> "Grouping[Any]":
    """Return the grouping of a text. Raises `UnknownGrouping` or `BadParameters`."""
    name, parameters = parsed_text(text)
    return info_of(name).parameters.from_mapping(parameters)
