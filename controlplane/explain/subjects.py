"""Subjects of explanations: a node, stream, query, measure or decision at a time, as one text."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from controlplane.alerts.measures import AlertMeasure
from controlplane.errors import Invalid


class SubjectKind(StrEnum):
    """What a subject names: a node by index, a decision by id, the others by name."""

    NODE = "node"
    STREAM = "stream"
    QUERY = "query"
    MEASURE = "measure"
    DECISION = "decision"


@dataclass(frozen=True)
class ExplanationSubject:
    """A subject of an explanation; `time`: the moment, None for now."""

    kind: SubjectKind
    name: str
    time: datetime | None = None

    def __str__(self) -> str:
        """Return the text of the subject: node:5@1700000000000, without a time for now."""
        text = f"{self.kind}:{self.name}"
        return text if self.time is None else f"{text}@{round(self.time.timestamp() * 1000)}"


def subject_of_measure(
    measure: str, node: int | None = None, time: datetime | None = None
) -> ExplanationSubject:
    """Return the subject of a measure of a cluster; `node`: of a load, that of the fullest node."""
    if measure == AlertMeasure.LOAD and node is not None:
        return ExplanationSubject(SubjectKind.NODE, str(node), time)
    return ExplanationSubject(SubjectKind.MEASURE, measure, time)


_FORM: Final = "Must be as node:5, stream:NAME, query:NAME, measure:latency_p95 or decision:ID"
_NUMBERED: Final = (SubjectKind.NODE, SubjectKind.DECISION)
# The digits of ms since the epoch, from 2001 to 2286.
_TIME_DIGITS: Final = 13
# More digits than an id or an index has.
_MOST_DIGITS: Final = 9


def parse_subject(text: str) -> ExplanationSubject:
    """Return the subject of a text with an optional time: node:5, node:5@<ms since the epoch>.

    Raises `Invalid` for another form.
    """
    kind, _, rest = text.partition(":")
    name, sign, moment = rest.rpartition("@")
    # A name may contain the sign, too.
    if not sign or not moment.isdecimal() or len(moment) != _TIME_DIGITS:
        name, moment = rest, ""
    if kind not in list(SubjectKind) or not name or len(name) > 200:  # noqa: PLR2004 - longest name
        raise Invalid({"subject": [_FORM]})
    subject = ExplanationSubject(SubjectKind(kind), name, _moment(moment))
    numbered = name.isascii() and name.isdecimal() and len(name) <= _MOST_DIGITS
    if subject.kind in _NUMBERED and not numbered:
        raise Invalid({"subject": [_FORM]})
    if subject.kind is SubjectKind.MEASURE and name not in list(AlertMeasure):
        raise Invalid({"subject": [f"Must be a measure: {', '.join(AlertMeasure)}"]})
    return subject


def _moment(text: str) -> datetime | None:
    """Return the moment of a number of milliseconds, None for "". Raises `Invalid`."""
    if not text:
        return None
    try:
        return datetime.fromtimestamp(int(text) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        raise Invalid({"subject": ["The time must be in ms since 1970"]}) from None
