"""Finds words of `tests.language_rules` in names and texts of the product."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Final, NamedTuple

from tests.language_rules import RULES, Rule

_COMMENT: Final = re.compile(r"(?:^|\s)#:? +(.*)$")
_SCRIPT_TEXT: Final = re.compile(
    r"//(.*)$|/?\*(.*?)(?:\*/|$)|([\"'`])((?:(?!\3).)* (?:(?!\3).)*)\3"
)
_TAGS: Final = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", re.DOTALL)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Attributes of HTML that people read.
_READ_ATTRIBUTES: Final = {"title", "placeholder", "aria-label", "alt", "data-confirm", "content"}


class Place(NamedTuple):
    """A name or a text, and its line."""

    line: int
    text: str


class Contents(NamedTuple):
    """The names and texts of a file."""

    names: list[Place]
    texts: list[Place]


class Fault(NamedTuple):
    """A word that must not be used."""

    line: int
    word: str
    rule: Rule

    def holds_in(self, path: str) -> bool:
        """Return whether the rule holds in a file."""
        rule = self.rule
        return not is_below(path, rule.exceptions) and (
            not rule.within or is_below(path, rule.within)
        )


@cache
def parsed(source: str) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(source)


def contents_of_python(source: str) -> Contents:
    """Return the names that a module's code chooses, its docstrings, comments and messages."""
    names, texts = [], []
    for number, line in enumerate(source.split("\n"), 1):
        if "#" in line and (comment := _COMMENT.search(line)):
            texts.append(Place(number, comment[1]))
    columns: set[int] = set()
    # Breadth first: a class comes before its fields.
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and " " in node.value.strip():
                texts.append(Place(node.lineno, node.value))
        elif id(node) not in columns and (name := _chosen_name(node)):
            names.append(Place(getattr(node, "lineno", 1), name))
        if isinstance(node, ast.ClassDef) and not _is_value(node):
            columns |= _fields(node)
    return Contents(names, texts)


def _chosen_name(node: ast.AST) -> str | None:
    """Return the name that a node gives to something, None for other nodes."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case ast.ClassDef(name=name) | ast.arg(arg=name) | ast.ExceptHandler(name=name):
            return name
        case ast.Name(id=name, ctx=ast.Store()):
            return name
        case ast.Attribute(attr=name, ctx=ast.Store(), value=ast.Name(id="self")):
            return name
    return None


def _fields(class_: ast.ClassDef) -> set[int]:
    """Return the ids of a class's fields: columns of a database, or JSON of the API."""
    return {
        id(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
        for node in class_.body
        if isinstance(node, ast.AnnAssign | ast.Assign)
    }


def _is_value(class_: ast.ClassDef) -> bool:
    """Return whether a class is a dataclass or a named tuple, whose fields the code chooses."""
    return any("dataclass" in ast.unparse(item) for item in class_.decorator_list) or any(
        isinstance(base, ast.Name) and base.id == "NamedTuple" for base in class_.bases
    )


class _TemplateTexts(HTMLParser):
    """Collects the texts of a template that people read."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[Place] = []
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_script = tag in {"script", "style"}
        for name, value in attrs:
            if name in _READ_ATTRIBUTES and value:
                self.texts.append(Place(self.getpos()[0], value))

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if not self._in_script:
            lines = enumerate(data.split("\n"), self.getpos()[0])
            self.texts += [Place(number, line) for number, line in lines if line.strip(" …")]


def contents_of_template(source: str) -> Contents:
    """Return the texts of a template, without tags and variables."""
    parser = _TemplateTexts()
    parser.feed(_TAGS.sub(lambda match: "\n" * match[0].count("\n") or "…", source))
    parser.close()
    return Contents([], parser.texts)


def contents_of_script(source: str) -> Contents:
    """Return the comments and messages of a script."""
    texts = [
        Place(number, next(filter(None, (match[1], match[2], match[4])), ""))
        for number, line in enumerate(source.split("\n"), 1)
        for match in _SCRIPT_TEXT.finditer(line)
    ]
    return Contents([], texts)


def snake(name: str) -> str:
    """Return a name in snake case without leading and trailing underscores."""
    return _CAMEL.sub("_", name.strip("_")).lower()


class Checker:
    """Finds words of the rules; `by_name` and `by_part` have the rule of each word."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self.by_name = {name: rule for rule in self.rules for name in rule.names}
        self.by_class = {name: rule for rule in self.rules for name in rule.classes}
        self.by_part = {part: rule for rule in self.rules for part in rule.parts}
        self.patterns = [
            (re.compile("|".join(rule.texts), re.IGNORECASE), rule)
            for rule in self.rules
            if rule.texts
        ]
        every = "|".join(text for rule in self.rules for text in rule.texts)
        self.any_pattern = re.compile(every or r"(?!)", re.IGNORECASE)

    def faults(self, contents: Contents) -> Iterator[Fault]:
        """Yield the words that the rules replace."""
        for line, name in contents.names:
            rule = self.by_class.get(name.strip("_")) or self._rule_of(snake(name))
            if rule is not None:
                yield Fault(line, name, rule)
        for line, text in contents.texts:
            if self.any_pattern.search(text):
                for pattern, rule in self.patterns:
                    for match in pattern.finditer(text):
                        yield Fault(line + text.count("\n", 0, match.start()), match[0], rule)

    def module_fault(self, path: str) -> Fault | None:
        """Return the fault of a module's name; `path` is that of its file."""
        bare = "/" + path.removesuffix(".py")
        for rule in self.rules:
            if any(bare.endswith(f"/{end}") for end in rule.modules):
                return Fault(1, path, rule)
        rule_of_name = self._rule_of(bare.rpartition("/")[2])
        return Fault(1, path, rule_of_name) if rule_of_name else None

    def _rule_of(self, name: str) -> Rule | None:
        if name in self.by_name:
            return self.by_name[name]
        return next((self.by_part[part] for part in name.split("_") if part in self.by_part), None)


CHECKER: Final = Checker(RULES)


@cache
def faults_of(root: Path, path: Path) -> list[Fault]:
    """Return the faults of a file of the product, without the exceptions of the rules."""
    name = path.relative_to(root).as_posix()
    read = {".html": contents_of_template, ".js": contents_of_script}
    contents = read.get(path.suffix, contents_of_python)(path.read_text())
    faults = list(CHECKER.faults(contents))
    if path.suffix == ".py" and (fault := CHECKER.module_fault(name)):
        faults.append(fault)
    return [fault for fault in faults if fault.holds_in(name)]


def is_below(name: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of these files or lies in one of these folders."""
    return any(name == folder or name.startswith(f"{folder}/") for folder in folders)
