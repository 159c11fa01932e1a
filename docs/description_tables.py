"""Write the tables of docs/cluster-description.md, and the JSON schema beside it, from the models.

`python -m docs.description_tables`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from controlplane.cluster_spec.document import json_schema

PAGE = Path(__file__).with_name("cluster-description.md")
SCHEMA = Path(__file__).with_name("cluster-description.schema.json")
MARK = "<!-- tables -->\n"
_TITLES = {
    "ClusterPart": "cluster",
    "NodePart": "nodes",
    "StreamPart": "streams",
    "SchemaPart": "streams: schema",
    "ColumnPart": "streams: schema: columns",
    "CharacteristicsPart": "streams: characteristics",
    "QueryPart": "queries",
    "TextPart": "queries: text",
    "MeasuredPart": "queries: measured",
    "TaskRangePart": "placement: task ranges",
    "PolicyPart": "policy",
    "BlackoutPart": "blackouts",
    "ExclusionPart": "exclusions",
    "SourcePart": "streams: source",
    "DropPart": "drops",
    "SinkPart": "sinks",
    "LadderPart": "ladder",
    "RungPart": "ladder: rungs",
    "KeptEdgePart": "ladder: rungs: kept",
    "EdgeCostPart": "ladder: costs",
    "EdgeWindowPart": "ladder: windows",
}


def schema() -> str:
    """Return the JSON schema as it stands in docs."""
    return json.dumps(json_schema(), indent=2) + "\n"


def tables() -> str:
    """Return what each part holds as Markdown."""
    definitions = json_schema()["$defs"]
    return "\n".join(_table(title, definitions[name]) for name, title in _TITLES.items())


def _table(title: str, part: dict[str, Any]) -> str:
    required = part.get("required", [])
    rows = [
        f"| `{name}` | {_kind(value)} | {_default(name in required, value)} | "
        f"{value.get('description', '')} |"
        for name, value in part["properties"].items()
    ]
    head = ["| name | value | if left out | meaning |", "|---|---|---|---|"]
    return "\n".join([f"### {title}", "", part["description"], "", *head, *rows, ""])


def _kind(value: dict[str, Any]) -> str:
    if "anyOf" in value:
        return " or ".join(_kind(option) for option in value["anyOf"])
    if "$ref" in value:
        return _TITLES[value["$ref"].rpartition("/")[2]]
    if "enum" in value:
        return ", ".join(f"`{option}`" if option else '`""`' for option in value["enum"])
    kind = str(value.get("type", "any"))
    if kind == "array":
        kind = f"list of {_kind(value['items'])}"
    return " ".join([kind, *_bounds(value)])


def _bounds(value: dict[str, Any]) -> Iterator[str]:
    for name, sign in (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤")):
        if name in value:
            yield f"{sign} {value[name]:,}".removesuffix(".0")
    if "maxLength" in value:
        yield f"of at most {value['maxLength']} characters"


def _default(required: bool, value: dict[str, Any]) -> str:
    if required:
        return "must be given"
    return f"`{json.dumps(value['default'])}`" if "default" in value else "empty"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text[: text.index(MARK) + len(MARK)] + tables(), encoding="utf-8")
    SCHEMA.write_text(schema(), encoding="utf-8")
