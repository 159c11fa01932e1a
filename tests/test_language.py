"""Size and language of the product's code: small modules, plain technical words.

`tests.language_rules` has the words that must not be used, and what to write instead.
`SIZE_NOT_YET_CLEAN` and `WORDS_NOT_YET_CLEAN` list what has still to be cleaned up: shrink them,
never extend them.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.language_checker import (
    Checker,
    contents_of_python,
    contents_of_script,
    contents_of_template,
    faults_of,
    is_below,
    parsed,
)
from tests.language_rules import RULES, TABLE, Rule

ROOT: Final = Path(__file__).parents[1]
PRODUCT: Final = ("algorithms", "benchmarks", "controlplane", "dashboard", "docs", "workers")
MAX_FUNCTION_LINES: Final = 40
MAX_FILE_LINES: Final = 400
MAX_MODULES: Final = 20

# Paths of folders and files. Shrink these lists.
SIZE_NOT_YET_CLEAN: Final[tuple[str, ...]] = ()
WORDS_NOT_YET_CLEAN: Final[tuple[str, ...]] = ()
# Public classes of the product that share their name. Shrink this list.
SHARED_CLASS_NAMES: Final[frozenset[str]] = frozenset(
    {
        "Balance",
        "Board",
        "Delivery",
        "Function",
        "Heartbeat",
        "Lane",
        "Outcome",
        "Place",
        "Problem",
        "Progress",
        "Unit",
    }
)


def modules() -> Iterator[Path]:
    """Yield the modules of the product, without migrations."""
    for folder in PRODUCT:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def checked(paths: Iterator[Path], listed: tuple[str, ...]) -> list[Path]:
    return [path for path in paths if not is_below(path.relative_to(ROOT).as_posix(), listed)]


def texts_for_people() -> Iterator[Path]:
    """Yield the modules, templates and scripts of the product."""
    yield from modules()
    yield from sorted((ROOT / "dashboard").rglob("*.html"))
    yield from sorted((ROOT / "static/js").glob("*.js"))
    yield from sorted((ROOT / "dashboard").rglob("*.js"))


def place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    """The syntax trees of all modules, made in the one process that has this file."""
    return {path: parsed(path.read_text()) for path in modules()}


def test_functions_are_short(trees: dict[Path, ast.Module]) -> None:
    long = []
    for path in checked(iter(trees), SIZE_NOT_YET_CLEAN):
        for node in ast.walk(trees[path]):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
                lines = (node.end_lineno or first) - first + 1
                if lines > MAX_FUNCTION_LINES:
                    long.append(f"{place(path, first)} {node.name}: {lines} lines")
    assert not long, f"more than {MAX_FUNCTION_LINES} lines"


def test_files_are_short() -> None:
    sizes = {path: path.read_text().count("\n") for path in checked(modules(), SIZE_NOT_YET_CLEAN)}
    long = {str(path): lines for path, lines in sizes.items() if lines > MAX_FILE_LINES}
    assert not long, f"more than {MAX_FILE_LINES} lines"


def test_folders_have_few_modules() -> None:
    counts: dict[Path, int] = {}
    for path in checked(modules(), SIZE_NOT_YET_CLEAN):
        if path.name != "__init__.py":
            counts[path.parent] = counts.get(path.parent, 0) + 1
    large = {str(folder): count for folder, count in counts.items() if count > MAX_MODULES}
    assert not large, f"more than {MAX_MODULES} modules"


def names_of_several(classes: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names that several classes have; `classes`: name and where it is defined."""
    places: dict[str, list[str]] = {}
    for name, where in classes:
        places.setdefault(name, []).append(where)
    return {name: where for name, where in places.items() if len(where) > 1}


def public_classes(trees: dict[Path, ast.Module]) -> Iterator[tuple[str, str]]:
    """Yield the public classes of modules, without those of the Lab and Django's commands."""
    for path, tree in trees.items():
        parts = path.relative_to(ROOT).parts
        if parts[0] not in {"benchmarks", "docs"} and not {"lab", "commands"} & set(parts):
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield node.name, place(path, node.lineno)


def test_a_class_has_a_name_of_its_own(trees: dict[Path, ast.Module]) -> None:
    shared = names_of_several(public_classes(trees))
    new = {name: where for name, where in shared.items() if name not in SHARED_CLASS_NAMES}
    assert not new, "several classes of one name: name each by its subject"
    assert not SHARED_CLASS_NAMES - shared.keys(), "no longer shared: remove it from the list"


def test_several_classes_of_one_name_are_found() -> None:
    classes = [("Change", "a.py:1"), ("Step", "a.py:9"), ("Change", "b.py:5")]
    assert names_of_several(classes) == {"Change": ["a.py:1", "b.py:5"]}


def test_words_are_plain() -> None:
    wrong = [
        f"{place(path, fault.line)} {fault.word!r}: write {fault.rule.write}"
        for path in checked(texts_for_people(), WORDS_NOT_YET_CLEAN)
        for fault in faults_of(ROOT, path)
    ]
    assert not wrong, "\n".join(wrong)


def test_exceptions_exist() -> None:
    listed = [*SIZE_NOT_YET_CLEAN, *WORDS_NOT_YET_CLEAN]
    for rule in RULES:
        listed += [*rule.exceptions, *rule.within]
        assert all(rule.exceptions.values()), "an exception has a reason"
    for entry in listed:
        assert (ROOT / entry).exists(), f"{entry} is gone: remove it from the list"


def words_in(rule: Rule, code: str) -> set[str]:
    return {fault.word for fault in Checker([rule]).faults(contents_of_python(code))}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.write)
def test_every_rule_finds_its_words(rule: Rule) -> None:
    """The checker cannot pass without looking: each word of each rule is found."""
    for name in (*rule.names, *(f"some_{part}_of_it" for part in rule.parts)):
        camel = "".join(word.title() for word in name.split("_"))
        assert words_in(rule, f"def {name}() -> None: ...") == {name}
        assert words_in(rule, f"def f(_{name}: int) -> None: ...") == {f"_{name}"}
        assert words_in(rule, f"for {name}, x in (): ...") == {name}
        assert words_in(rule, f"class {camel}: ...") == {camel}
    for name in rule.classes:
        assert words_in(rule, f"class _{name}: ...") == {f"_{name}"}
    for end in rule.modules:
        checker = Checker([rule])
        assert checker.module_fault(f"workers/{end}.py")
        assert not checker.module_fault(f"workers/{end}x.py")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.write)
def test_every_pattern_matches_a_sample(rule: Rule) -> None:
    for pattern in rule.texts:
        assert any(re.search(pattern, sample, re.IGNORECASE) for sample in rule.samples), pattern
    for sample in rule.samples:
        assert words_in(rule, f'"""Text: {sample}."""'), sample
        assert words_in(rule, f"x = 1  # {sample}"), sample
        assert words_in(rule, f'raise Invalid(f"Text: {sample} {{x}}")'), sample
    for sample in rule.fine:
        assert not words_in(rule, f'"""Text: {sample}."""'), sample


def test_the_table_is_whole() -> None:
    """Rows of the table of names to replace, each by a word that it must find."""
    names = {name for rule in TABLE for name in (*rule.names, *rule.parts, *rule.classes)}
    assert names >= {
        "Turn", "Waiting", "Work", "taking", "added_by", "Head", "Input", "Output", "hand_over",
        "taken_out", "put_in", "Form", "Shape", "marks", "luck", "salt", "plant", "high_water",
        "last_heard", "arc", "shed", "scheme", "merge_node", "Stamp", "Tip", "past", "upto",
        "Span", "Caps", "backwards", "price", "undo", "Fate", "telling", "told", "tell", "tending",
        "upkeep", "seeing", "noting", "judging", "Verdict", "applies_by_itself", "outdate",
        "bringing", "describing", "drain", "Drained", "carry_out",
    }  # fmt: skip


def test_fields_of_rows_and_bodies_are_not_names() -> None:
    code = "class {}:\n    told: int\n"
    rule = Rule("x", names=("told",))
    assert words_in(rule, code.format("Body(Schema)")) == set()
    assert words_in(rule, code.format("Value(NamedTuple)")) == {"told"}
    assert words_in(rule, "@dataclass(frozen=True)\n" + code.format("Value")) == {"told"}


def test_texts_of_templates_and_scripts_are_read() -> None:
    template = """{% if told %}<p class="told" title="It told"
        >Who {{ told }}
        is told</p>{# told #}<script>let told;</script>{% endif %}"""
    texts = [(line, text.strip()) for line, text in contents_of_template(template).texts]
    assert texts == [(1, "It told"), (2, "Who …"), (3, "is told")]
    script = "// It told.\nconst told = 'who told';\n/* told\n * again */ told('x');"
    texts = [(line, text.strip()) for line, text in contents_of_script(script).texts]
    assert texts == [(1, "It told."), (2, "who told"), (3, "told"), (4, "again")]
