"""The form of a run: parameters, values and series of an experiment."""

from collections.abc import Mapping
from typing import Any

from django.http import QueryDict

from algorithms.lab.experiments import Experiment, series_title
from algorithms.vocabulary import ParameterField
from controlplane.errors import Fields, Invalid
from controlplane.models import LabRun
from dashboard.forms import form_fields, parameters, read_some, words_of
from dashboard.lab.summary import plain


def lab_fields(experiment: Experiment) -> list[ParameterField]:
    """Return the parameters without the swept one."""
    return [field for field in experiment.parameters.fields() if field.name != experiment.x.name]


def run_in(
    experiment: Experiment, sent: QueryDict
) -> tuple[dict[str, Any], list[float], list[str]]:
    """Return parameters, values and series of a run. Raises `Invalid` for invalid text."""
    values, faults = read_some(sent, {"values": numbers})
    given: dict[str, Any] = {}
    try:
        given = parameters(lab_fields(experiment), sent)
    except Invalid as invalid:
        faults |= invalid.fields
    if faults:
        raise Invalid(faults)
    return given, values["values"], sent.getlist("series")


def numbers(text: str) -> list[float]:
    """Return the numbers in a text, separated by blanks, lines, commas or semicolons.

    Raises `ValueError` for other words.
    """
    try:
        return [float(word) for word in words_of(text)]
    except ValueError:
        raise ValueError("Must be numbers, separated by blanks or commas") from None


def form_of(
    experiment: Experiment, sent: Mapping[str, str], series: list[str] | None, errors: Fields
) -> dict[str, Any]:
    """Return the form with the submitted or default values."""
    defaults = ", ".join(plain(value) for value in experiment.values)
    chosen = experiment.series if series is None else series
    return {
        "fields": form_fields(lab_fields(experiment), sent, errors),
        "values": sent.get("values", defaults),
        "choices": [
            {
                "name": name,
                "title": series_title(experiment.planner, experiment.name, name),
                "on": name in chosen,
            }
            for name in experiment.choices
        ],
        "errors": errors,
        "value_faults": errors.get("values", ()),
        "others": _elsewhere(experiment, errors),
    }


def sent_of(run: LabRun) -> dict[str, str]:
    """Return the form data of a run, to edit it."""
    texts = {
        name: "" if value is None else plain(value)
        for name, value in run.parameters.items()
        if value is not False
    }
    return texts | {"values": ", ".join(plain(float(value)) for value in run.values)}


def _elsewhere(experiment: Experiment, errors: Fields) -> list[str]:
    """Return the errors that belong to no displayed field."""
    shown = {field.name for field in lab_fields(experiment)} | {"values", "series"}
    return [text for name, texts in errors.items() if name not in shown for text in texts]
