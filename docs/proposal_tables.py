"""Write the tables of docs/proposals.md from the states: `python -m docs.proposal_tables`."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import django

if TYPE_CHECKING:
    from controlplane.plans.proposal_states import Verb

Verbs = Sequence["Verb"]
PAGE = Path(__file__).with_name("proposals.md")
MARK = "<!-- states and verbs: written by python -m docs.proposal_tables -->\n"


def tables() -> str:
    """Return the diagram, the verbs and the states as Markdown; Django must be set up."""
    from controlplane.plans.proposal_states import VERBS, State  # noqa: PLC0415 - as above

    states = [str(word) for word in State]
    return "\n".join((_diagram(VERBS, states), _verbs(VERBS, states), _states(VERBS, states)))


def _diagram(verbs: Verbs, states: Sequence[str]) -> str:
    arrows = [
        f"    {_id(source)} --> {_id(verb.target or source)}: {verb.name}"
        for verb in verbs
        for source in _ordered(verb.sources, states)
    ]
    names = [f'    state "{word}" as {_id(word)}' for word in states if " " in word]
    lines = ["```mermaid", "stateDiagram-v2", "    direction LR", *names, "    [*] --> computing"]
    return "\n".join([*lines, *arrows, "```", ""])


def _verbs(verbs: Verbs, states: Sequence[str]) -> str:
    rows = [
        f"| {verb.name} | {', '.join(_ordered(verb.sources, states))} |"
        f" {verb.target or 'as it was'} | {verb.role or 'Weir'} |"
        f" {_asks(verb.seal, verb.reason)} | {verb.about} |"
        for verb in verbs
    ]
    head = ["### Verbs", "", "| verb | from | to | who | names | what happens |", "|" + "---|" * 6]
    return "\n".join([*head, *rows, ""])


def _states(verbs: Verbs, states: Sequence[str]) -> str:
    said = [verb for verb in verbs if not verb.by_weir]
    rows = [
        f"| {word} | {', '.join(verb.name for verb in said if word in verb.sources) or 'nothing'} |"
        for word in states
    ]
    head = ["### What people can do in each state", "", "| state | verbs |", "|---|---|"]
    return "\n".join([*head, *rows, ""])


def _ordered(sources: Iterable[str], states: Sequence[str]) -> list[str]:
    names = {str(source) for source in sources}
    return [word for word in states if word in names]


def _id(word: str) -> str:
    return word.replace(" ", "_")


def _asks(seal: bool, reason: bool) -> str:
    required = [word for word, wanted in (("seal", seal), ("reason", reason)) if wanted]
    return ", ".join(required) or "–"  # noqa: RUF001 - the dash that typography has for nothing


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    django.setup()
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text[: text.index(MARK) + len(MARK)] + tables(), encoding="utf-8")
