"""Rows of the changes of a policy: which settings changed from what to what."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import time
from typing import Any, Final

from controlplane.numbers import MISSING
from controlplane.policies.history import PolicyChange
from controlplane.policies.settings import PolicySettings
from dashboard.policies.forms import DAYS, SETTINGS, Setting, setting_texts

_BY_NAME: Final = {setting.name: setting for setting in SETTINGS}


@dataclass(frozen=True)
class ChangedSetting:
    """A setting of a change, with its values as texts."""

    label: str
    unit: str
    before: str
    after: str


@dataclass(frozen=True)
class ChangeRow:
    """A change of a policy; `is_reverted`: True if its settings have their earlier values now."""

    change: PolicyChange
    settings: Sequence[ChangedSetting]
    is_reverted: bool


def change_rows(changes: Sequence[PolicyChange], policy: PolicySettings) -> list[ChangeRow]:
    """Return the rows of changes; a setting that this version does not have is left out."""
    now = policy.to_json()
    return [
        ChangeRow(
            change,
            [
                _changed(_BY_NAME[name], before, change.after.get(name))
                for name, before in change.before.items()
                if name in _BY_NAME
            ],
            all(now.get(name) == before for name, before in change.before.items()),
        )
        for change in changes
    ]


def _changed(setting: Setting, before: Any, after: Any) -> ChangedSetting:
    return ChangedSetting(
        setting.label, setting.unit, _text(setting, before), _text(setting, after)
    )


def _text(setting: Setting, value: Any) -> str:
    """Return a stored value as its form has it: a flag as on or off, nothing as a dash."""
    if setting.kind == "flag":
        return "on" if value else "off"
    if setting.kind == "time" and value:
        value = time.fromisoformat(value)
    words = DAYS if setting.name == "auto_days" else {}
    texts = [words.get(text, text) for text in setting_texts(setting, value)]
    return ", ".join(filter(None, texts)) or MISSING
