"""Write the tables of docs/algorithms.md from the registry: `python docs/algorithm_tables.py`."""

from pathlib import Path

from algorithms.lab.registry import PLANNERS
from algorithms.planner import Algorithm, Planner
from algorithms.vocabulary import ParameterField

PAGE = Path(__file__).with_name("algorithms.md")
MARK = "<!-- tables -->\n"
_TYPES = {bool: "true or false", int: "whole number", float: "number", str: "text"}


def tables() -> str:
    """Return all planners with their algorithms and parameters as Markdown."""
    return "\n".join(_planner(planner) for planner in PLANNERS)


def _planner(planner: Planner) -> str:
    shared = _parameters("all algorithms", planner.problem.fields())
    names = {field.name for field in planner.problem.fields()}
    own = [_parameters(f"`{item.name}`", _own(item, names)) for item in planner.algorithms]
    return "\n".join(
        [
            f"### `{planner.name}`: {planner.title}",
            "",
            "| algorithm | kind | what it does |",
            "|---|---|---|",
            *(f"| `{item.name}` | {item.kind} | {item.summary} |" for item in planner.algorithms),
            "",
            "| algorithm | parameter | title | type | default | what it is |",
            "|---|---|---|---|---|---|",
            *(line for lines in (shared, *own) for line in lines),
            "",
        ]
    )


def _own(algorithm: Algorithm, shared: set[str]) -> tuple[ParameterField, ...]:
    return tuple(field for field in algorithm.parameters.fields() if field.name not in shared)


def _parameters(whose: str, fields: tuple[ParameterField, ...]) -> list[str]:
    return [
        f"| {whose} | `{field.name}` | {_title(field)} | {_type(field)} | {_default(field)}"
        f" | {field.help} |"
        for field in fields
    ]


def _title(field: ParameterField) -> str:
    """Return the title, with the paper's letter if the name is another one."""
    letter = "" if field.letter in ("", field.name) else f" ({field.letter})"
    return f"{field.title}{letter}"


def _type(field: ParameterField) -> str:
    choices = [f"`{choice}` ({title})" for choice, title in field.titled_choices]
    facts = [", ".join(choices) or _TYPES[field.type]]
    facts += [field.unit] if field.unit else []
    facts += [] if field.minimum is None else [f"at least {field.minimum:,.12g}"]
    facts += [] if field.maximum is None else [f"at most {field.maximum:,.12g}"]
    return ", ".join([*facts, *(["or none"] if field.optional else [])])


def _default(field: ParameterField) -> str:
    return "none" if field.default is None else str(field.default).lower()


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text[: text.index(MARK) + len(MARK)] + tables(), encoding="utf-8")
