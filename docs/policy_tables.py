"""Write the tables of docs/policies.md from the code: `python -m docs.policy_tables`."""

import os
from pathlib import Path

import django

PAGE = Path(__file__).with_name("policies.md")
MARK = "<!-- loops and reasons: written by python -m docs.policy_tables -->\n"


def tables() -> str:
    """Return the loops, the reasons and the settings as Markdown; Django must be set up."""
    return f"{_loops()}\n{_reasons()}\n{_settings()}"


def _loops() -> str:
    from controlplane.watch import all_loops  # noqa: PLC0415 - after django.setup

    rows = [f"| {loop.name} | {loop.about} | {_gains(loop.measure)} |" for loop in all_loops()]
    head = ["### Loops", "", "| loop | subject | its plans must lower |", "|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def _gains(measure: str) -> str:
    return measure.replace("_", " ") or "nothing: they are needed"


def _reasons() -> str:
    from controlplane.watch import CODES  # noqa: PLC0415 - as above

    rows = [f"| `{code.name}` | {code.about} |" for code in CODES.values()]
    head = ["### Reasons", "", "| code | means |", "|---|---|"]
    return "\n".join([*head, *rows, ""])


def _settings() -> str:
    from controlplane.policies.settings import PolicySettings  # noqa: PLC0415 - as above

    defaults = PolicySettings()
    rows = []
    for name, field in PolicySettings.model_fields.items():
        about = " ".join(filter(None, [f"{field.title}.", field.description]))
        default = _value_text(getattr(defaults, name))
        rows.append(f"| `{name}` | {default} | {about} |")
    head = ["### Settings and their defaults", "", "| setting | default | means |", "|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def _value_text(value: object) -> str:
    match value:
        case None | [] | "":
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(str(item) for item in value)
        case int():
            return f"{value:,}"
        case _:
            return str(value)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    django.setup()
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text[: text.index(MARK) + len(MARK)] + tables(), encoding="utf-8")
