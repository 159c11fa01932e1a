"""The form of a policy: its sections and fields, and its parsing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from functools import partial
from typing import Any, Final

from controlplane.errors import Fields
from controlplane.planning.adapters import adapters
from controlplane.policies.settings import DAY_NAMES, PolicySettings, Section, extra_of, input_of
from dashboard.forms import Reader, finite, read


@dataclass(frozen=True)
class Setting:
    """A setting in a form.

    `kind`: number, flag, choice, many or time. `scale`: the factor from the displayed number to the
    setting. `choices`: values with labels.
    """

    name: str
    label: str
    kind: str
    unit: str
    hint: str
    scale: float
    choices: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, name: str) -> "Setting":
        """Return a setting as `controlplane.policies.settings` declares it."""
        field, extra = PolicySettings.model_fields[name], extra_of(name)
        (kind, choices), words = input_of(name), _LABELS.get(name, {})
        return cls(
            name, field.title or name, kind, extra["unit"], field.description or "",
            extra["scale"], tuple((value, words.get(value, value)) for value in choices),
        )  # fmt: skip


@dataclass(frozen=True)
class FormSection:
    """Settings that belong together; `anchor`: the id of the section in the page."""

    anchor: str
    title: str
    about: str
    settings: tuple[Setting, ...]

    @classmethod
    def of(cls, section: Section, title: str, about: str) -> "FormSection":
        """Return a section with its settings in the order of their declaration."""
        names = [
            name for name in PolicySettings.model_fields if extra_of(name)["section"] == section
        ]
        return cls(f"section-{section}", title, about, tuple(map(Setting.of, names)))


# The names of the days by their numbers, as choices have them.
DAYS: Final = {str(day): name for day, name in enumerate(DAY_NAMES)}
# The labels of choices.
_LABELS: Final[Mapping[str, Mapping[str, str]]] = {
    "auto_kinds": {name: row.planner.title for name, row in adapters().items()},
    "auto_days": DAYS,
    "watch": {
        "off": "off: request no plans",
        "recommend": "recommend: request plans; people decide",
        "act": "act: apply plans that the policy approves",
    },
    "redirects": {
        "off": "off: streams stay where they are",
        "recommend": "recommend: request plans; people decide",
        "act": "act: redirect streams at once",
    },
    "shedding_windows": {
        "auto": "auto: whole windows of queries with short windows",
        "random": "random: records, evenly",
    },
    "shedding_objective": {
        "value": "value: the most results, by weight",
        "fair": "fair: equal parts of all queries, by weight",
    },
}
# Settings without effect while another one is off.
_SWITCHES: Final = {"auto_record_runs": "auto_record", "auto_record_error": "auto_record"}
SECTIONS: Final = (
    FormSection.of(
        Section.APPROVAL, "Automatic approval",
        "A plan that meets all conditions starts without a person.",
    ),
    FormSection.of(Section.DECISION, "Decisions", "About all other plans."),
    FormSection.of(Section.WATCH, "Monitors", "Their limits and their pace."),
    FormSection.of(
        Section.ADMISSION, "Streams on split nodes",
        "When the load of split nodes is checked, and by which method streams are redirected.",
    ),
    FormSection.of(
        Section.SHEDDING, "Load shedding",
        "How shedding plans are computed, and how the pipeline follows them.",
    ),
    FormSection.of(
        Section.DRIFT, "Drift", "Changes since the snapshot from which on a plan is stale."
    ),
    FormSection.of(Section.SPEED, "Speed", "Limits of each step of an execution."),
)  # fmt: skip
SETTINGS: Final = tuple(setting for section in SECTIONS for setting in section.settings)


@dataclass(frozen=True)
class FormSetting:
    """A setting with its displayed value and its fault; `is_idle`: it has no effect now."""

    setting: Setting
    value: str
    ticked: frozenset[str]
    faults: list[str]
    is_idle: bool = False

    @property
    def text(self) -> str:
        """Return the value for readers, with its unit."""
        setting = self.setting
        if setting.kind == "flag":
            return "yes" if self.value else "no"
        if setting.choices:
            return (
                ", ".join(words for value, words in setting.choices if value in self.ticked)
                or setting.hint.partition("None selected: ")[2].rstrip(".")
                or "none"
            )
        return f"{self.value} {setting.unit}".strip() if self.value else "any"


def form_sections(
    policy: PolicySettings,
    sent: Mapping[str, list[str]] | None = None,
    faults: Fields | None = None,
) -> list[tuple[FormSection, list[FormSetting]]]:
    """Return the form with the submitted or present settings."""
    return [
        (
            section,
            [_form_setting(setting, policy, sent, faults or {}) for setting in section.settings],
        )
        for section in SECTIONS
    ]


def policy_changes(sent: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return the settings in a form. Raises `Invalid` for invalid numbers."""
    texts = {name: values[0] for name, values in sent.items() if values}
    many = {s.name: _many(sent.get(s.name, [])) for s in SETTINGS if s.kind == "many"}
    readers = {s.name: _reader(s) for s in SETTINGS if s.kind != "many"}
    return read(texts, **readers) | many


def _form_setting(
    setting: Setting, policy: PolicySettings, sent: Mapping[str, list[str]] | None, faults: Fields
) -> FormSetting:
    texts = (
        setting_texts(setting, getattr(policy, setting.name))
        if sent is None
        else sent.get(setting.name, [])
    )
    value = texts[0] if texts else ""
    switch = _SWITCHES.get(setting.name)
    is_idle = switch is not None and not getattr(policy, switch)
    return FormSetting(setting, value, frozenset(texts), faults.get(setting.name, []), is_idle)


def setting_texts(setting: Setting, value: Any) -> list[str]:
    """Return the form value of a setting."""
    if setting.kind == "many":
        return [str(item) for item in value]
    if setting.kind == "flag":
        return ["1"] if value else []
    if isinstance(value, time):
        return [f"{value:%H:%M}"]
    return [f"{value / setting.scale:.12g}"] if setting.kind == "number" else [str(value or "")]


def _many(values: list[str]) -> list[Any]:
    return [int(v) if v.isdecimal() and len(v) == 1 else v for v in values]


def _reader(setting: Setting) -> Reader:
    kinds: Mapping[str, Reader] = {
        "flag": bool,
        "number": partial(_number, scale=setting.scale),
        "time": lambda text: text or None,
    }
    return kinds.get(setting.kind, str)


def _number(text: str, scale: float) -> float | int:
    value = finite(text)
    if scale == 1.0:
        return value
    # Rounds binary fractions: a tenth of a megabyte is a whole number of bytes.
    return round(value * scale, 9) if scale < 1 else round(value * scale)
