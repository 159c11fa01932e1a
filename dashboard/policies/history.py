"""Rows of the changes of a policy: which settings changed from what to what."""

from collections.abc import Sequence
from datetime import time
from typing import Any, Final

from controlplane.models import AuditEntry
from controlplane.numbers import MISSING
from controlplane.policies.settings import PolicySettings
from dashboard.policies.forms import DAYS, SETTINGS, Setting, setting_texts

_BY_NAME: Final = {setting.name: setting for setting in SETTINGS}


def change_rows(changes: Sequence[AuditEntry], policy: PolicySettings) -> list[dict[str, Any]]:
    """Return the rows of changes; a setting that this version does not have is left out.

    `is_reverted`: True if the settings of a change have their earlier values now.
    """
    now = policy.to_json()
    return [
        {
            "change": change,
            "settings": [
                _changed(_BY_NAME[name], before, change.after.get(name))
                for name, before in change.before.items()
                if name in _BY_NAME
            ],
            "is_reverted": all(now.get(name) == before for name, before in change.before.items()),
        }
        for change in changes
    ]


def _changed(setting: Setting, before: Any, after: Any) -> dict[str, str]:
    """Return a changed setting with its values as texts."""
    texts = {"before": _text(setting, before), "after": _text(setting, after)}
    return {"label": setting.label, "unit": setting.unit, **texts}


def _text(setting: Setting, value: Any) -> str:
    """Return a stored value as its form has it: a flag as on or off, nothing as a dash."""
    if setting.kind == "flag":
        return "on" if value else "off"
    if setting.kind == "time" and value:
        value = time.fromisoformat(value)
    words = DAYS if setting.name == "auto_days" else {}
    texts = [words.get(text, text) for text in setting_texts(setting, value)]
    return ", ".join(filter(None, texts)) or MISSING
