"""Mutants replace what tests can detect, and reach the functions that were imported already."""

import importlib.util
import json
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.mutation.mutants import places_of, sampled
from benchmarks.mutation.patching import patched
from benchmarks.mutation.sample import (
    EQUIVALENTS,
    chosen,
    is_equivalent,
    known_outcomes,
    parse_options,
    table,
    write,
)
from benchmarks.mutation.selection import Contexts
from benchmarks.mutation.trees import ROOT, Outcome

SOURCE = '''"""Docstring with 1 < 2."""

from functools import cache
from typing import Final

LIMIT: Final = 3


class Box:
    """A box."""

    size: int = 2

    @property
    def fits(self) -> bool:
        """Return whether 2 < 3."""
        return self.size < LIMIT and (
            self.size
            != 1
        )


@cache
def clipped(value: int, most: int = 5) -> int:
    assert value != 7, "2 < 3"
    if not value:
        raise ValueError(f"{value + 1}")
    return min(value, most)
'''


def replacements(source: str) -> set[tuple[str, str]]:
    return {(m.before, m.after) for place in places_of("m.py", source) for m in place}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", {("a < b", "(a <= b)"), ("a < b", "(a >= b)")}),
        ("a == b", {("a == b", "(a != b)")}),
        ("a and b", {("a and b", t) for t in ("(a or b)", "(a)", "(b)")}),
        ("not a", {("not a", "(a)")}),
        ("a // b", {("a // b", "(a * b)")}),
        ("max(a)", {("max(a)", "min(a)")}),
        ("2", {("2", "3")}),
        ("True", {("True", "False")}),
        ("a if b else c", {("a if b else c", "(a)"), ("a if b else c", "(c)")}),
        ("'text'", set()),
        ("a: int | None", set()),
        ("assert a < b", set()),
    ],
)
def test_an_expression_has_its_mutants(source: str, expected: set[tuple[str, str]]) -> None:
    statement = source if ":" in source or source.startswith("assert") else f"x = {source}"
    assert replacements(statement) == expected


def test_statements_are_removed_and_returns_are_none() -> None:
    source = "def f(x):\n    x.a = b\n    f(x)\n    return x\n"
    assert replacements(source) == {
        ("x.a = b", "pass"),
        ("f(x)", "pass"),
        ("return x", "return None"),
    }


def test_a_mutant_compiles_keeps_the_lines_and_shows_its_diff() -> None:
    mutants = [mutant for place in places_of("m.py", SOURCE) for mutant in place]
    assert len(mutants) == 15
    for mutant in mutants:
        mutated = mutant.applied(SOURCE)
        compile(mutated, "m.py", "exec")
        assert (mutated != SOURCE, mutated.count("\n")) == (True, SOURCE.count("\n"))
        assert mutant.diff(SOURCE).startswith("--- m.py")


def test_a_seed_has_its_sample(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(SOURCE)
    first, again, other = (sampled(tmp_path, ["m.py"], 5, random.Random(n)) for n in (1, 1, 2))
    assert first == again != other
    assert len({mutant.start for mutant in first}) == 5


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    file = tmp_path / "mutated_module.py"
    file.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("mutated_module", file)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules["mutated_module"] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def test_functions_that_others_imported_are_mutated(module: ModuleType) -> None:
    """Properties, methods and decorated functions as well."""
    imported, box = module.clipped, module.Box()
    assert patched("mutated_module.py", SOURCE, SOURCE.replace("min(", "max("))
    assert patched("mutated_module.py", SOURCE, SOURCE.replace("< LIMIT", "> LIMIT"))
    assert (imported(3), box.fits) == (5, False)


@pytest.mark.parametrize(("text", "other"), [("= 3", "= 4"), ("= 2", "= 3"), ("= 5", "= 6")])
def test_constants_and_defaults_need_a_process_of_their_own(
    module: ModuleType, text: str, other: str
) -> None:
    assert not patched("mutated_module.py", SOURCE, SOURCE.replace(text, other))
    assert module.Box().fits


def test_each_equivalent_mutant_is_one_of_the_code_and_has_a_reason() -> None:
    for row in json.loads(EQUIVALENTS.read_text()):
        places = places_of(row["path"], source := (ROOT / row["path"]).read_text())
        diffs = [mutant.diff(source).splitlines()[3:] for place in places for mutant in place]
        assert row["diff"] in diffs
        assert row["reason"]


def test_a_run_that_was_interrupted_continues_with_the_rest(tmp_path: Path) -> None:
    """And a mutant counts neither as killed nor as survived if its tests fail without it."""
    options = parse_options(["--output", str(tmp_path / "r.json"), "--mutants", "3", "--resume",
                             "--areas", "drift"])  # fmt: skip
    mutants = chosen(options)
    assert known_outcomes(options, mutants) == []
    statuses = ("killed", "survived", "invalid")
    outcomes = [
        Outcome(mutant, mutant.diff((ROOT / mutant.path).read_text()), status, 1, 0.1)
        for mutant, status in zip(mutants, statuses, strict=True)
    ]
    write(options, Contexts({}, {}, frozenset()), outcomes)
    assert known_outcomes(options, mutants[:2]) == outcomes[:2]
    assert [is_equivalent(outcome) for outcome in outcomes] == [False] * 3
    assert table(outcomes).splitlines()[-1].endswith("50.0%")


def test_the_tests_of_a_line_come_first_and_those_of_its_folder_follow() -> None:
    """For what runs at import, the tests of the file, its folder and the folders above, by time."""
    fast, slow, beside, above, other = (
        "tests/a/b/test_f.py::fast", "tests/a/b/test_f.py::slow", "tests/a/b/test_g.py::g",
        "tests/a/test_h.py::h", "tests/c/test_i.py::i",
    )  # fmt: skip
    contexts = Contexts(
        {"a/b/m.py": {1: [""], 5: [slow, fast], 7: [fast]}},
        {fast: 0.1, slow: 3.0, beside: 0.2, above: 0.05, other: 0.01}, frozenset(),
    )  # fmt: skip
    assert contexts.tests("a/b/m.py", 5, 5, 9.0) == [fast, slow, beside]
    assert contexts.tests("a/b/m.py", 7, 7, 0.15) == [fast]
    assert contexts.tests("a/b/m.py", 1, 1, 9.0) == [above, fast, beside, slow]
