import io
import sys
from pathlib import Path

import pytest

from algorithms.errors import BadProblem
from algorithms.lab.json_files import parse_json, read_json
from algorithms.strict_json import BadJson, JsonLimits, read_bounded


def test_values_are_those_of_the_standard() -> None:
    assert parse_json(b'{"a": [1, 2.5, null, true, "\xc3\xa9"]}', "f") == {
        "a": [1, 2.5, None, True, "é"]
    }


def test_a_byte_order_mark_is_passed_over() -> None:
    """Editors on Windows write one."""
    assert parse_json("\ufeff[1]".encode(), "f") == [1]


@pytest.mark.parametrize("size", [2**20 - 1, 2**20, 2**20 + 1])
def test_bounds_are_counted_over_blocks(size: int) -> None:
    """Quotes, escapes and depth continue where the next block of the text begins."""
    text = b'["' + rb"\\\"[," * (size // 6) + b'",' + b"[" * 3 + b"1,2" + b"]" * 3 + b"]"
    assert read_bounded(text, JsonLimits(depth=4, values=7))[1:] == [[[[1, 2]]]]
    for bounds, code in ((JsonLimits(depth=3), "depth"), (JsonLimits(values=5), "values")):
        with pytest.raises(BadJson) as refused:
            read_bounded(text, bounds)
        assert refused.value.code == code


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "is not JSON: Expecting value (line 1, column 1)"),
        (b'{"a": 1,\n}', "line 2, column 1"),
        (b"[1] 2", "Extra data"),
        (b"[NaN]", "NaN is not a number of JSON"),
        (b"[-Infinity]", "-Infinity is not a number of JSON"),
        (b'{"a": 1, "b": 2, "a": 3}', "names 'a' twice"),
        (b"\xff\xfe", "is not UTF-8 text (byte 0)"),
        (b"[" * 100_000, "nested too deeply"),
        (b"9" * 5_000, "too large"),
        (b"[1e999]", "too large"),
        (b"[" + b"9" * 309 + b"]", "too large"),
    ],
)
def test_anything_else_is_refused_with_its_place(raw: bytes, why: str) -> None:
    with pytest.raises(BadProblem) as caught:
        parse_json(raw, "problem.json")
    assert caught.value.where == "problem.json"
    assert why in caught.value.why


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "problem.json").write_text("[1]")
    assert read_json(str(tmp_path / "problem.json")) == [1]


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"[2]")))
    assert read_json("-") == [2]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("none.json", "No such file"),
        (".", "directory"),
        ("a\0b", "null byte"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(BadProblem) as caught:
        read_json(f"{tmp_path}/{name}")
    assert name in caught.value.where or name == "."
    assert why in caught.value.why


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"[[[1]]]", ""),
        (b"[[[[1]]]]", "depth"),
        (b'{"a": [{"b": {}}]}', "depth"),
        # Brackets in texts are not levels, whatever is escaped in them.
        (b'["[[[[[", "\\"[[[[", "\\\\"]', ""),
        (b"[1, 2, 3, 4, 5, 6, 7]", ""),
        (b"[1, 2, 3, 4, 5, 6, 7, 8, 9]", "values"),
        (b'"' + b"x" * 60 + b'"', "size"),
    ],
)
def test_size_depth_and_values_are_bounded(raw: bytes, code: str) -> None:
    bounds = JsonLimits(size=50, depth=3, values=8)
    if not code:
        read_bounded(raw, bounds)
        return
    with pytest.raises(BadJson) as caught:
        read_bounded(raw, bounds)
    assert caught.value.code == code


def test_a_string_that_does_not_end_is_read_once() -> None:
    """Time would grow with the square of the length: hours for a body of this size."""
    with pytest.raises(BadJson) as refused:
        read_bounded(b'"' + b'\\"' * 200_000)
    assert refused.value.code == "syntax"
