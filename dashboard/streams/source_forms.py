"""The fields of sources besides topics in the form of a new stream, from their declarations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from algorithms.strict_json import read_bounded
from controlplane.errors import Invalid
from controlplane.wire.sources.kinds import KINDS
from controlplane.wire.topics.base import TOPIC, defaults_of

KIND: Final = "source_kind"
_LONGEST: Final = 4_000


@dataclass(frozen=True)
class SourceInput:
    """One field of a kind of source: its name in the form and in the declaration, as it stands."""

    name: str
    label: str
    about: str
    value: str
    placeholder: str
    faults: Sequence[str]


def source_inputs(
    values: Mapping[str, Any], faults: Mapping[str, Sequence[str]]
) -> dict[str, list[SourceInput]]:
    """Return the fields of each kind besides topics, with the values of a form.

    `faults`: of the chosen kind, by field of its declaration.
    """
    return {
        kind: [
            SourceInput(
                _name(kind, field.name), field.name.replace("_", " ").capitalize(),
                source.about[field.name], str(values.get(_name(kind, field.name), "")),
                _text(defaults_of(source).get(field.name)),
                faults.get(field.name, ()) if values.get(KIND) == kind else (),
            )
            for field in fields(source)  # type: ignore[arg-type]  # a dataclass
        ]
        for kind, source in KINDS.items()
        if kind != TOPIC
    }  # fmt: skip


def other_source_in(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the source of the chosen kind as JSON values, {} for none. Raises `Invalid`."""
    kind = str(values.get(KIND, ""))
    if not kind:
        return {}
    if kind == TOPIC or kind not in KINDS:
        raise Invalid({KIND: ["Choose one of the kinds"]})
    row, faults = {"kind": kind}, dict[str, list[str]]()
    for field in fields(KINDS[kind]):  # type: ignore[arg-type]  # a dataclass
        text = str(values.get(_name(kind, field.name), "")).strip()
        if not text:
            continue
        if len(text) > _LONGEST:
            faults[field.name] = [f"Must have at most {_LONGEST:,} characters"]
            continue
        try:
            row[field.name] = text if field.type is str else read_bounded(text.encode())
        except ValueError:
            faults[field.name] = ["Must be a number, or a list or an object of JSON"]
    if faults:
        raise Invalid(faults)
    return row


def _name(kind: str, field: str) -> str:
    return f"{kind}-{field}"


def _text(default: Any) -> str:
    return "" if default in (None, "", {}) else str(default)
