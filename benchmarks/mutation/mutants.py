"""Mutants of a module: the text of one expression or statement is replaced by another.

The operators are those of mutmut and cosmic-ray. Neither runs here: mutmut calls mutated functions
through a trampoline, and leaves out those with decorators (properties, transactions, tasks);
cosmic-ray changes the checkout, and mutates annotations. Left out here, as no test should depend on
them: annotations, docstrings, texts, assertions (also `strict` of `zip`, `frozen` and `slots` of
data classes), and what is imported for type checkers.
"""

import ast
import copy
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Final

_COMPARISONS: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_CALLS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """A replacement in a file: `start` and `stop` are offsets in its text, `line` is from 1."""

    path: str
    line: int
    start: int
    stop: int
    before: str
    after: str

    def applied(self, source: str) -> str:
        """Return the source with the replacement, which has as many lines."""
        after, missing = self.after, self.before.count("\n") - self.after.count("\n")
        if missing > 0:
            closing = ")" if after.endswith(")") else ""
            after = after.removesuffix(closing) + "\n" * missing + closing
        return source[: self.start] + after + source[self.stop :]

    def diff(self, source: str) -> str:
        """Return the replacement as a unified diff without context."""
        lines = unified_diff(
            source.splitlines(), self.applied(source).splitlines(), self.path, self.path, "", "", 0
        )
        return "\n".join(line.rstrip("\n") for line in lines)

    def to_json(self) -> dict[str, object]:
        """Return its fields as JSON values."""
        return asdict(self)


def sampled(root: Path, paths: Sequence[str], count: int, chance: random.Random) -> list[Mutant]:
    """Return `count` mutants of the files, each at another place; fewer if there are fewer."""
    places = [place for path in paths for place in places_of(path, (root / path).read_text())]
    chosen = chance.sample(places, min(count, len(places)))
    return [chance.choice(place) for place in chosen]


def places_of(path: str, source: str) -> list[list[Mutant]]:
    """Return the mutants of a module by place, in the order of the source."""
    offsets = [0]
    for line in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    lines = source.splitlines()

    def offset(line: int, column: int) -> int:
        # Columns of the parser count bytes.
        return offsets[line - 1] + len(lines[line - 1].encode()[:column].decode())

    places = []
    for node in _nodes(ast.parse(source)):
        start = offset(node.lineno, node.col_offset)
        stop = offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        before = source[start:stop]
        texts = dict.fromkeys(_replacements(node))
        if texts:
            places.append([Mutant(path, node.lineno, start, stop, before, text) for text in texts])
    return places


def _nodes(tree: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yield the expressions and statements that are mutated, parents first."""
    for name, value in ast.iter_fields(tree):
        if name in {"annotation", "returns", "type_params"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _is_left_out(child):
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield child
            yield from _nodes(child)


def _is_left_out(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword):
        # `zip(…, strict=True)` asserts an invariant, and the type checker holds those of classes.
        return node.arg in {"strict", "frozen", "slots"}
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Subscript):
        # Aliases of types.
        return isinstance(node.value, ast.Name) and node.value.id in {
            "Annotated",
            "Literal",
            "Final",
        }
    return isinstance(node, ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom)


def _replacements(node: ast.AST) -> Iterator[str]:
    """Yield the texts that replace a node."""
    if isinstance(node, ast.Compare):
        yield from _compared(node)
    elif isinstance(node, ast.BoolOp):
        yield from _connected(node)
    elif isinstance(node, ast.UnaryOp):
        yield f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        yield f"({ast.unparse(ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right))})"
    elif isinstance(node, ast.Constant):
        yield from _constants(node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
        name = ast.Name(_CALLS[node.func.id], ast.Load())
        yield ast.unparse(ast.Call(name, node.args, node.keywords))
    elif isinstance(node, ast.IfExp):
        yield f"({ast.unparse(node.body)})"
        yield f"({ast.unparse(node.orelse)})"
    else:
        yield from _statements(node)


def _connected(node: ast.BoolOp) -> Iterator[str]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield f"({ast.unparse(ast.BoolOp(other, node.values))})"
    for index in range(len(node.values)):
        rest = [value for place, value in enumerate(node.values) if place != index]
        yield f"({ast.unparse(ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0])})"


def _compared(node: ast.Compare) -> Iterator[str]:
    for index, operator in enumerate(node.ops):
        for other in _COMPARISONS[type(operator)]:
            mutated = copy.copy(node)
            mutated.ops = [*node.ops[:index], other(), *node.ops[index + 1 :]]
            yield f"({ast.unparse(mutated)})"


def _constants(value: object) -> Iterator[str]:
    if isinstance(value, bool):
        yield str(not value)
    elif isinstance(value, int | float):
        yield repr(value + 1)


def _statements(node: ast.AST) -> Iterator[str]:
    """Yield replacements of a statement; one that binds a name is never removed: it would fail."""
    if isinstance(node, ast.Return) and node.value is not None:
        if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield "return None"
    elif isinstance(node, ast.Continue):
        yield "break"
    elif isinstance(node, ast.Break):
        yield "continue"
    elif isinstance(node, ast.Raise | ast.AugAssign | ast.Expr | ast.Delete) or (
        isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name | ast.Tuple)
    ):
        yield "pass"
