"""Size and language of the product's code: small modules, plain technical words.

A word of the tables below must not appear in clean folders. `SIZE_NOT_YET_CLEAN` and
`WORDS_NOT_YET_CLEAN` list what has still to be cleaned up: shrink them, never extend them.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
PRODUCT: Final = ("algorithms", "benchmarks", "controlplane", "dashboard", "docs", "workers")
MAX_FUNCTION_LINES: Final = 40
MAX_FILE_LINES: Final = 400
MAX_MODULES: Final = 20

# ---------------------------------------------------------------------------------------------
# Words that must not be used, with what to write instead.
# ---------------------------------------------------------------------------------------------

# Whole names of variables, parameters, functions, classes and modules.
NAMES: Final = {
    "afforded": "fit_to_budget",
    "alone": "single, only",
    "applies_by_itself": "decide_auto_approval",
    "at": "index, position, now, moment",
    "backwards": "inverse",
    "begun": "started",
    "came": "received",
    "carry_out": "commit_change",
    "drain": "place_pending",
    "drained": "PlacementPass",
    "fate": "MoveStatus",
    "fates": "statuses",
    "found": "the thing itself: query, rows, match",
    "gone": "deleted, ended",
    "hand_over": "transfer_state",
    "high_water": "batch_sequence",
    "last_heard": "load_feedback",
    "mine": "own_…, selected",
    "one": "the thing itself: query, row, item",
    "outdate": "mark_stale",
    "plant": "bootstrap",
    "put_in": "import_state",
    "retire_rivals": "supersede_rivals",
    "taken_out": "export_state",
    "taking": "partial_aggregation",
    "told": "message, text, event",
    "turn": "node_batch",
    "lucky": "needs_sample_hash",
    "undo": "inverse, rollback_cost",
    "upto": "stop",
}
# Exact names of classes.
CLASSES: Final = {
    "Asked": "PlannerRequest, QuerySpec",
    "Caps": "StepLimits",
    "Cut": "LogPosition",
    "Shape": "AggregateSchema",
    "Span": "TaskRange, TimeRange",
    "Stamp": "IdempotencyToken",
    "Verdict": "PolicyDecision",
    "Waiting": "NodeBacklog",
    "Work": "WorkItem, PendingWork",
}
# Parts of names between underscores, and module names.
PARTS: Final = {
    "bring": "apply, import",
    "bringing": "apply",
    "luck": "sample_hash",
    "tell": "notify, publish, print",
    "telling": "formatting, notifications",
    "tend": "reconcile, send_due",
    "tending": "reconcile",
    "upkeep": "housekeeping",
    "judging": "review",
    "noting": "decision_log",
    "seeing": "observation",
}
# Regular expressions for docstrings.
PHRASES: Final = {
    r"\b(tells?|told|telling)\b": "return, report, notify",
    r"\b(says|said|saying)\b": "return, name, describe",
    r"\b(brings?|bringing|brought)\b": "apply, cause",
    r"\bby (itself|themselves)\b": "automatically",
    r"\bcarr(y|ies|ied|ying) out\b": "execute, apply",
    r"\blooks? after\b": "reconcile, supervise",
    r"\bluck\b": "sample hash",
    r"\b(tends|tending)\b": "reconcile",
}

# ---------------------------------------------------------------------------------------------
# Not yet clean: paths of folders, modules or functions. Shrink these lists.
# ---------------------------------------------------------------------------------------------

SIZE_NOT_YET_CLEAN: Final[tuple[str, ...]] = ()
WORDS_NOT_YET_CLEAN: Final[tuple[str, ...]] = ()

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def modules() -> Iterator[Path]:
    """Yield the modules of the product, without migrations."""
    for folder in PRODUCT:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def is_listed(path: Path, listed: tuple[str, ...]) -> bool:
    name = path.relative_to(ROOT).as_posix()
    return any(name == entry or name.startswith(f"{entry}/") for entry in listed)


def checked(listed: tuple[str, ...]) -> list[Path]:
    return [path for path in modules() if not is_listed(path, listed)]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def test_functions_are_short() -> None:
    long = []
    for path in checked(SIZE_NOT_YET_CLEAN):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
                lines = (node.end_lineno or first) - first + 1
                if lines > MAX_FUNCTION_LINES:
                    long.append(f"{place(path, first)} {node.name}: {lines} lines")
    assert not long, f"more than {MAX_FUNCTION_LINES} lines"


def test_files_are_short() -> None:
    sizes = {path: path.read_text().count("\n") for path in checked(SIZE_NOT_YET_CLEAN)}
    long = {str(path): lines for path, lines in sizes.items() if lines > MAX_FILE_LINES}
    assert not long, f"more than {MAX_FILE_LINES} lines"


def test_folders_have_few_modules() -> None:
    counts: dict[Path, int] = {}
    for path in checked(SIZE_NOT_YET_CLEAN):
        if path.name != "__init__.py":
            counts[path.parent] = counts.get(path.parent, 0) + 1
    large = {str(folder): count for folder, count in counts.items() if count > MAX_MODULES}
    assert not large, f"more than {MAX_MODULES} modules"


def names_in(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield names that the code chooses: fields of classes are columns and bodies of the API."""
    fields = {
        id(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
        for class_ in ast.walk(tree)
        if isinstance(class_, ast.ClassDef)
        for node in class_.body
        if isinstance(node, ast.AnnAssign | ast.Assign)
    }
    for node in ast.walk(tree):
        if isinstance(node, Definition):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            if id(node) not in fields:
                yield node.id, node.lineno
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name, node.lineno


def test_names_are_plain() -> None:
    wrong = []
    for path in checked(WORDS_NOT_YET_CLEAN):
        names = [(path.stem, 1), *names_in(tree_of(path))]
        for name, line in names:
            bare = name.strip("_").lower()
            advice = (
                CLASSES.get(name.strip("_"))
                or NAMES.get(bare)
                or next((PARTS[part] for part in bare.split("_") if part in PARTS), None)
            )
            if advice:
                wrong.append(f"{place(path, line)} {name}: write {advice}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("phrase", PHRASES)
def test_docstrings_are_plain(phrase: str) -> None:
    pattern = re.compile(phrase, re.IGNORECASE)
    wrong = []
    for path in checked(WORDS_NOT_YET_CLEAN):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, Definition | ast.Module):
                match = pattern.search(ast.get_docstring(node) or "")
                if match:
                    line = 1 if isinstance(node, ast.Module) else node.lineno
                    wrong.append(f"{place(path, line)} {match[0]!r}: write {PHRASES[phrase]}")
    assert not wrong, "\n".join(wrong)


def test_exceptions_exist() -> None:
    for entry in (*SIZE_NOT_YET_CLEAN, *WORDS_NOT_YET_CLEAN):
        assert (ROOT / entry).exists(), f"{entry} is gone: remove it from the list"
