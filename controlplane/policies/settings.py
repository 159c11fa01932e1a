"""The settings of a policy: the only declaration of their types, defaults, bounds and labels.

The stored row, the API's bodies, the cluster description, the form and the documentation are
derived from this model.
"""

import math
from collections.abc import Callable, Mapping
from datetime import time
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Final, Literal, Self, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from controlplane.errors import Fields, Invalid
from controlplane.planning.adapters import adapters
from controlplane.plans.ladder_settings import SheddingSettings

DAY_NAMES: Final = (
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
)  # fmt: skip
Approver = Literal["operator", "approver", "admin"]
Strategies = Literal["profile", "drf_m", "drf", "ard", "ari", "par"]
Watch = Literal["off", "recommend", "act"]
WindowDrops = Literal["auto", "random"]
SheddingObjective = Literal["value", "fair"]
# The value of one in a unit, by the beginning of the unit.
_SCALES: Final = {"%": 0.01, "MB": 1e6}
_DAY_MS: Final = 86_400_000


def _whole(value: Any) -> Any:
    """Return a float without a fraction as an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _kinds(value: Any) -> Any:
    known = list(adapters())
    if not isinstance(value, list) or any(kind not in known for kind in value):
        raise ValueError(f"Must be a list of {', '.join(known)}")
    return [kind for kind in known if kind in value]


def _days(value: Any) -> Any:
    listed = value if isinstance(value, list) else None
    days = range(len(DAY_NAMES))
    if listed is None or any(type(day) is not int or day not in days for day in listed):
        raise ValueError("Must be a list of days, 0 (Monday) to 6 (Sunday)")
    return sorted(set(listed))


def _time_of_day(value: Any) -> Any:
    if value in (None, ""):
        return None
    try:
        moment = time.fromisoformat(str(value))
    except ValueError:
        raise ValueError("Must be a time of day, as 08:30") from None
    if moment.tzinfo is not None:
        raise ValueError("Enter it in UTC, without a zone")
    return moment.replace(microsecond=0)


Count = Annotated[int, Field(ge=0, le=2**31 - 1), BeforeValidator(_whole)]
Positive = Annotated[int, Field(ge=1, le=2**31 - 1), BeforeValidator(_whole)]
Runs = Annotated[int, Field(ge=0, le=1000), BeforeValidator(_whole)]
Seconds = Annotated[int, Field(ge=0, le=7 * 86_400), BeforeValidator(_whole)]
BytesPerSecond = Annotated[int, Field(ge=1, le=2**63 - 1), BeforeValidator(_whole)]
Bytes = Annotated[int, Field(ge=0, le=2**63 - 1), BeforeValidator(_whole)]
Share = Annotated[float, Field(ge=0, le=1)]
Fraction = Annotated[float, Field(ge=0, le=100)]
Milliseconds = Annotated[int, Field(ge=1, le=_DAY_MS), BeforeValidator(_whole)]
TimeOfDay = Annotated[time | None, BeforeValidator(_time_of_day)]
Kinds = Annotated[list[str], BeforeValidator(_kinds)]
Days = Annotated[list[int], BeforeValidator(_days)]


def _automatic_kinds() -> list[str]:
    """Return the planners whose plans need no person by default."""
    return [name for name, adapter in adapters().items() if adapter.is_automatic]


class Section(StrEnum):
    """The subject of a setting; a form shows the settings of a section together."""

    APPROVAL = "approval"
    DECISION = "decision"
    WATCH = "watch"
    ADMISSION = "admission"
    SHEDDING = "shedding"
    DRIFT = "drift"
    SPEED = "speed"


def _setting(section: Section, label: str, *, default: Any, unit: str = "", hint: str = "") -> Any:
    """Declare a setting: its label, unit and hint; a form shows the value in the unit."""
    given = {"default_factory": default} if callable(default) else {"default": default}
    scale = next((factor for start, factor in _SCALES.items() if unit.startswith(start)), 1.0)
    extra: dict[str, Any] = {"section": section, "unit": unit, "scale": scale}
    return Field(title=label, description=hint, json_schema_extra=extra, **given)


_approval = partial(_setting, Section.APPROVAL)
_decision = partial(_setting, Section.DECISION)
_watch = partial(_setting, Section.WATCH)
_admission = partial(_setting, Section.ADMISSION)
_shedding = partial(_setting, Section.SHEDDING)
_drift = partial(_setting, Section.DRIFT)
_speed = partial(_setting, Section.SPEED)

# The defaults of ladders.
_LADDERS: Final = SheddingSettings()


class PolicySettings(BaseModel):
    """The policy of a cluster.

    `auto_*`: which plans are approved without a person. `tolerated_*`: shares by which the cluster
    may differ from the snapshot for `drift_hold_s` before a plan is stale. `node_moves`,
    `cluster_moves`, `bytes_per_s`, `pause_ms`: limits of an execution. `redirect*`,
    `*split_nodes`: the periodic admission of streams. `shedding_*`: ladders of drop rules.
    `watch*`, `dead_band`, `cooldown_s`: the watch loops; `alert_hold_s`: alerts.
    Times of day are UTC, days 0 (Monday) to 6.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    auto_kinds: Kinds = _approval(
        "Kinds of plans",
        default=_automatic_kinds,
        hint="By default the kinds that move no operator state and change no query.",
    )
    auto_asked: bool = _approval(
        "Also plans that people requested",
        default=True,
        hint="Otherwise only plans of the monitors.",
    )
    auto_moves: Count = _approval("Moves, at most", default=50)
    auto_bytes: Bytes = _approval("State, at most", default=10_000_000, unit="MB")
    auto_gain: Share = _approval(
        "Gain, at least",
        default=0.05,
        unit="%",
        hint="In imbalance or replication factor, whichever the plan lowers more.",
    )
    auto_from: TimeOfDay = _approval("From", default=None, unit="UTC", hint="Empty: at any hour.")
    auto_until: TimeOfDay = _approval(
        "Until", default=None, unit="UTC", hint="Before “from”: over midnight."
    )
    auto_days: Days = _approval("On", default=list, hint="None selected: every day.")
    auto_record: bool = _approval(
        "Only of planners with a good record",
        default=False,
        hint="The ledger compares predictions with measurements.",
    )
    auto_record_runs: Runs = _approval("Minimum executed plans", default=5)
    auto_record_error: Fraction = _approval("Maximum median error", default=0.25, unit="%")
    approvers: Approver = _decision(
        "Approved by", default="approver", hint="This role or a higher one."
    )
    four_eyes: bool = _decision("Approver is not the requester", default=False)
    starts: bool = _decision(
        "Start approved plans at once",
        default=True,
        hint="Otherwise a plan waits, and its approval can be withdrawn.",
    )
    tolerated_rates: Fraction = _drift("Rates changed by", default=0.5, unit="%")
    tolerated_ended: Share = _drift("Queries ended", default=0.5, unit="% of them")
    tolerated_new: Fraction = _drift("New queries", default=0.5, unit="% of them")
    tolerated_gain_loss: Share = _drift(
        "Gain lost",
        default=0.5,
        unit="%",
        hint="Of the gain that the plan had when it was computed.",
    )
    drift_hold_s: Seconds = _drift(
        "Drift lasts",
        default=300,
        unit="seconds",
        hint="Rates, queries and gain must differ for so long before a plan is stale.",
    )
    node_moves: Positive = _speed("Moves per node", default=10, unit="at once")
    cluster_moves: Positive = _speed("Moves per step", default=40, unit="at once")
    bytes_per_s: BytesPerSecond = _speed("State", default=50_000_000, unit="MB/s")
    pause_ms: Milliseconds = _speed("Longest pause of a task", default=10_000, unit="ms")
    latency_ms: Milliseconds = _watch(
        "p95 latency above", default=10_000, unit="ms", hint="Executions slow down above it, too."
    )
    watch: Watch = _watch("Monitors", default="recommend")
    watch_imbalance: Fraction = _watch("Imbalance above", default=0.2, unit="%")
    watch_replication: Fraction = _watch(
        "Replication above the best reachable by",
        default=0.2,
        unit="%",
        hint="The best that placement reaches within the limits of imbalance and load.",
    )
    watch_skew: Fraction = _watch(
        "Skew above",
        default=0.2,
        unit="%",
        hint="The load of the fullest task of a split query over that of all, of their capacity.",
    )
    watch_load: Annotated[float, Field(ge=0.01, le=100)] = _watch(
        "Load of a node above",
        default=1.0,
        unit="%",
        hint="Of its declared capacity, now or in five minutes.",
    )
    watch_kept: Share = _watch(
        "Input kept below",
        default=0.9,
        unit="%",
        hint="The part of the records read that is not dropped. It raises an alert.",
    )
    watch_topic_s: Seconds = _watch("Lag behind a topic above", default=300, unit="seconds")
    alert_hold_s: Seconds = _watch(
        "Hold time of alerts",
        default=60,
        unit="seconds",
        hint="A limit must be exceeded for so long; an alert ends after so long within the limit.",
    )
    watch_ladder_s: Seconds = _watch(
        "Shedding plan stale for",
        default=300,
        unit="seconds",
        hint="Then a plan computes the enabled shedding plan again; see “Recompute after”.",
    )
    dead_band: Share = _watch(
        "Clear threshold",
        default=0.1,
        unit="%",
        hint="How far below its limit a problem counts as solved; the least gain of a plan.",
    )
    cooldown_s: Seconds = _watch(
        "Cool-down", default=600, unit="seconds", hint="Between two plans of a loop."
    )

    redirects: Watch = _admission(
        "Redirections of streams",
        default="act",
        hint="Act: streams are redirected to other split nodes without a proposal, and recorded.",
    )
    redirect_strategy: Strategies = _admission("Strategy", default="profile")
    redirect_latency_s: Annotated[float, Field(ge=0.1, le=3600)] = _admission(
        "Latency of a split node above", default=5.0, unit="s", hint="It is then overloaded."
    )
    close_split_nodes: bool = _admission(
        "Close split nodes", default=True, hint="If the others have room for their streams."
    )
    split_nodes: Annotated[int, Field(ge=1, le=1000), BeforeValidator(_whole)] = _admission(
        "Split nodes, at most", default=32
    )

    shedding_limit: Annotated[float, Field(ge=0.1, le=1)] = _shedding(
        "Largest load",
        default=_LADDERS.limit,
        unit="%",
        hint="Of the usable time of a node: above it, an enabled shedding plan drops records.",
    )
    shedding_hold_s: Annotated[float, Field(ge=0, le=3600)] = _shedding(
        "Steps down after", default=_LADDERS.hold_s, unit="s", hint="Of less input."
    )
    shedding_drain_s: Annotated[float, Field(ge=0, le=3600)] = _shedding(
        "Works off a backlog within",
        default=_LADDERS.drain_s,
        unit="s",
        hint="By dropping more. 0: 80 % of the limit of the p95 latency.",
    )
    shedding_max_factor: Annotated[float, Field(ge=1.1, le=100)] = _shedding(
        "Last level, at least for", default=_LADDERS.max_factor, unit="times what it can process"
    )
    shedding_rungs: Annotated[int, Field(ge=2, le=32), BeforeValidator(_whole)] = _shedding(
        "Drop levels, at most", default=_LADDERS.rungs
    )
    shedding_windows: WindowDrops = _shedding(
        "Windows",
        default=_LADDERS.windows,
        hint="Auto: of queries with short windows, whole windows are dropped; else records.",
    )
    shedding_objective: SheddingObjective = _shedding(
        "Keeps",
        default=_LADDERS.objective,
        hint="Value: the most results by weight. Fair: as much as possible of the query that keeps"
        " the least for its weight, then of the next one.",
    )
    shedding_drift: Fraction = _shedding(
        "Recompute after",
        default=0.1,
        unit="%",
        hint="Of change of rates or costs since the shedding plan was computed.",
    )

    @model_validator(mode="after")
    def _window_has_both_ends(self) -> Self:
        if fault := _window_fault(self.auto_from, self.auto_until):
            raise PolicyFault(*fault)
        return self

    def to_json(self) -> dict[str, Any]:
        """Return every setting as a JSON value, by name."""
        return self.model_dump(mode="json")

    def changed(self, changes: Mapping[str, Any]) -> "PolicySettings":
        """Return a copy with these changes. Raises `Invalid` by field."""
        return settings_of({**self.model_dump(exclude_unset=True), **changes})


class PolicyFault(ValueError):
    """A value that contradicts another one; `name`: the setting."""

    def __init__(self, name: str, message: str) -> None:
        self.name = name
        super().__init__(message)


def settings_of(values: Mapping[str, Any]) -> PolicySettings:
    """Return the settings with these values, by name. Raises `Invalid` by field."""
    try:
        return PolicySettings.model_validate(dict(values))
    except ValidationError as refusal:
        raise Invalid(_faults(refusal)) from None


def optional_fields(kind: type[BaseModel] = PolicySettings) -> dict[str, Any]:
    """Return the settings as optional fields without a default, for `pydantic.create_model`."""
    return {
        name: (
            _annotation(field) | None,
            Field(None, title=field.title, description=field.description),
        )
        for name, field in kind.model_fields.items()
    }


def input_of(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the input of a setting in a form: number, flag, choice, many or time; and choices."""
    if name == "auto_kinds":
        return "many", tuple(adapters())
    if name == "auto_days":
        return "many", tuple(map(str, range(len(DAY_NAMES))))
    annotation = PolicySettings.model_fields[name].annotation
    if get_origin(annotation) is Literal:
        return "choice", get_args(annotation)
    if annotation is bool:
        return "flag", ()
    return "time" if time in get_args(annotation) else "number", ()


def extra_of(name: str) -> Mapping[str, Any]:
    """Return the section, the unit and the scale of a setting."""
    extra = PolicySettings.model_fields[name].json_schema_extra
    assert isinstance(extra, dict)
    return extra


def _annotation(field: FieldInfo) -> Any:
    return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


def _window_fault(begin: time | None, end: time | None) -> tuple[str, str] | None:
    if (begin is None) != (end is None):
        missing = "auto_from" if begin is None else "auto_until"
        return missing, "A window has both a start and an end"
    if begin is not None and begin == end:
        return "auto_until", "Must differ from the start of the window"
    return None


_MESSAGES: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "extra_forbidden": lambda _: "There is no such setting",
    "bool_type": lambda _: "Must be true or false",
    "finite_number": lambda _: "Must be finite",
    "int_type": lambda _: "Must be a whole number",
    "float_type": lambda _: "Must be a number",
    "int_from_float": lambda _: "Must be a whole number",
    "literal_error": lambda context: f"Must be {context['expected']}",
    "greater_than_equal": lambda context: f"Must be at least {context['ge']:,g}",
    "less_than_equal": lambda context: f"Must be at most {context['le']:,g}",
    "value_error": lambda context: str(context["error"]),
}


def _faults(refusal: ValidationError) -> Fields:
    faults: Fields = {}
    for error in refusal.errors(include_url=False):
        context: Mapping[str, Any] = error.get("ctx", {})
        name = str(error["loc"][0])[:60] if error["loc"] else ""
        if isinstance(cause := context.get("error"), PolicyFault):
            name = cause.name
        value = error["input"]
        if error["type"] == "int_type" and not isinstance(value, float):
            message = "Must be a number"
        elif isinstance(value, float) and not math.isfinite(value):
            message = "Must be finite"
        else:
            message = _MESSAGES.get(error["type"], lambda _, why=error["msg"]: why)(context)
        faults.setdefault(name, []).append(message)
    return faults
