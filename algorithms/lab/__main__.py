"""The planners from a command line: `python -m algorithms.lab list`, and `--help` for more.

Prints a plan as JSON. Exits 0 with a plan, 2 with one line on standard error if the call or the
problem is invalid, and 130 when interrupted.
"""

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final, NoReturn, TextIO

from algorithms.errors import BadParameters, Infeasible, PlanningError
from algorithms.interrupts import interruptible
from algorithms.lab.json_files import read_json
from algorithms.lab.planner import JsonPlanner
from algorithms.lab.registry import PLANNERS, planner
from algorithms.planner import Algorithm, Planner
from algorithms.vocabulary import ParameterField, Progress, Value, silent

_INVALID: Final = 2
# Exit code of a process that Ctrl-C ended: 128 + SIGINT.
_INTERRUPTED: Final = 130
# Exit code of a process whose output was closed: 128 + SIGPIPE.
_OUTPUT_CLOSED: Final = 141
# A value of the input is quoted in a message; it may be of any length.
_LONGEST_MESSAGE: Final = 600
_TYPES: Final = {bool: "true or false", int: "whole number", float: "number", str: "text"}


class _Parser(ArgumentParser):
    """A parser that reports an invalid call in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        raise _BadCall(f"{message} (see {self.prog} --help)")


class _BadCall(PlanningError):
    """The command line is invalid."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one call and return its exit code."""
    try:
        given = _parser().parse_args(arguments)
        print(_list(given) if given.planner == "list" else _plan(given), flush=True)  # noqa: T201
    except PlanningError as error:
        advice = "; raise nu, add servers or drop queries" if isinstance(error, Infeasible) else ""
        return _refuse(str(error) + advice)
    except ModuleNotFoundError as missing:
        # Numpy and numba are enough for most algorithms.
        package = (missing.name or "").partition(".")[0]
        return _refuse(f"this algorithm needs the package {package}: pip install {package}")
    except MemoryError:
        return _refuse("the problem does not fit into memory; give a smaller one")
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Or the interpreter would complain when it flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _OUTPUT_CLOSED
    return 0


def _parser() -> ArgumentParser:
    parser = _Parser(
        prog="python -m algorithms.lab", description="Weir's planners.", allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="planner", metavar="list|<planner>", required=True)
    listing = commands.add_parser("list", help="list the planners, algorithms and parameters")
    listing.add_argument("--json", action="store_true", help="as JSON")
    for known in PLANNERS:
        _add_planner(commands.add_parser(known.name, help=known.title, allow_abbrev=False), known)
    return parser


def _add_planner(parser: ArgumentParser, planner: Planner) -> None:
    names = ", ".join(algorithm.name for algorithm in planner.algorithms)
    parser.add_argument("algorithm", help=names)
    parser.add_argument(
        "--input", required=True, metavar="FILE", help="problem as JSON; - is stdin"
    )
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of problem or algorithm; may be repeated",
    )
    parser.add_argument("--seed", metavar="N", help="the same as --param seed=N")
    parser.add_argument("--progress", action="store_true", help="print the share done on stderr")


def _list(given: Namespace) -> str:
    return json.dumps(as_json(PLANNERS), indent=2) if given.json else as_text(PLANNERS)


def _plan(given: Namespace) -> str:
    chosen = planner(given.planner)
    algorithm = chosen.algorithm(given.algorithm)
    values = _values(chosen, algorithm, given.param, given.seed)
    data = read_json(given.input)
    with interruptible(_progress_printer(sys.stderr) if given.progress else silent) as report:
        plan = chosen.run(algorithm, data, values, report)
    return json.dumps(plan, allow_nan=False)


def _values(
    chosen: JsonPlanner, algorithm: Algorithm, given: Sequence[str], seed: str | None
) -> dict[str, Value]:
    """Return the parameters of a call. Raises `BadParameters`."""
    fields = {field.name: field for field in chosen.fields(algorithm)}
    texts = _texts([*given, *([] if seed is None else [f"seed={seed}"])])
    if seed is not None and "seed" not in fields:
        # An algorithm without randomness has the same plan for every seed, so it accepts any.
        text = texts.pop("seed")
        if not (text.isascii() and text.isdigit()):
            raise BadParameters({"seed": [f"must be a whole number of at least 0, not {text!r}"]})
    values: dict[str, Value] = {}
    for name, text in texts.items():
        try:
            # The planner refuses unknown names.
            values[name] = fields[name].parsed(text) if name in fields else text
        except ValueError as wrong:
            raise BadParameters({name: [str(wrong)]}) from None
    return values


def _texts(given: Sequence[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise _BadCall(f"--param {pair!r}: must be NAME=VALUE")
        if name.strip() in texts:
            raise BadParameters({name.strip(): ["is given twice"]})
        texts[name.strip()] = text
    return texts


def _progress_printer(stream: TextIO) -> Progress:
    """Return a progress that prints each whole percent to a stream once."""
    last = -1

    def print_share(share: float) -> None:
        nonlocal last
        percent = int(100 * share)
        if percent > last:
            last = percent
            print(f"{percent} %", file=stream, flush=True)

    return print_share


def _refuse(message: str) -> int:
    line = " ".join(message.split())
    short = line if len(line) <= _LONGEST_MESSAGE else f"{line[: _LONGEST_MESSAGE - 3]}..."
    print(f"algorithms: {short}", file=sys.stderr)  # noqa: T201
    return _INVALID


def as_json(planners: Iterable[Planner]) -> dict[str, Any]:
    """Return planners, their algorithms and the parameters of each as JSON values."""
    return {
        "planners": [
            {
                "name": planner.name,
                "title": planner.title,
                "algorithms": [
                    _algorithm_json(planner, algorithm) for algorithm in planner.algorithms
                ],
            }
            for planner in planners
        ]
    }


def as_text(planners: Iterable[Planner]) -> str:
    """Return the same as text."""
    return "\n".join(line for planner in planners for line in _lines(planner))


def _algorithm_json(planner: Planner, algorithm: Algorithm) -> dict[str, Any]:
    own = {name: getattr(algorithm, name) for name in ("name", "title", "kind", "summary")}
    return {**own, "parameters": [_field_json(field) for field in planner.fields(algorithm)]}


def _field_json(field: ParameterField) -> dict[str, Any]:
    lists = {"choices": list(field.choices), "choice_titles": list(field.choice_titles)}
    return asdict(field) | {"type": field.type.__name__} | lists


def _lines(planner: Planner) -> list[str]:
    lines = [f"{planner.name}: {planner.title}"]
    for algorithm in planner.algorithms:
        lines += ["", f"  {algorithm.name} ({algorithm.kind}): {algorithm.title}"]
        lines += [f"    {algorithm.summary}"]
        lines += [f"    --param {_describe(field)}" for field in planner.fields(algorithm)]
    return lines


def _describe(field: ParameterField) -> str:
    facts = [_TYPES[field.type] + (f" [{field.unit}]" if field.unit else "")]
    if field.choices:
        titled = [f"{value} ({title})" for value, title in field.titled_choices]
        facts = [f"one of {', '.join(titled)}"]
    if field.minimum is not None:
        facts.append(f"at least {field.minimum:,.12g}")
    if field.maximum is not None:
        facts.append(f"at most {field.maximum:,.12g}")
    if field.optional:
        facts.append("or none")
    default = "none" if field.default is None else str(field.default).lower()
    return f"{field.name}={default}  {field.title} ({', '.join(facts)}): {field.help}"


if __name__ == "__main__":
    sys.exit(main())
