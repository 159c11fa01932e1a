from dataclasses import dataclass
from typing import Any

import pytest
from django.template.loader import render_to_string

from algorithms.vocabulary import ParameterField, Parameters, parameter
from controlplane.errors import Invalid
from dashboard.forms import form_fields, parameters


@dataclass(frozen=True)
class Mixed(Parameters):
    """One parameter of each kind."""

    flag: bool = parameter(default=True, help="Yes or no.")
    rule: str = parameter("mms", help="One of two.", choices={"ic": "IC", "mms": "MMS"})
    limit: int | None = parameter(
        None, unit="queries", help="None is not a limit.", minimum=1, maximum=100
    )
    sweeps: int = parameter(1_000_000, help="How many moves.", minimum=0, maximum=2_000_000)
    share: float = parameter(
        0.123456789, title="Free part", letter="f", help="How much.", minimum=-1.0, maximum=1.0
    )


def fields() -> list[ParameterField]:
    return list(Mixed.fields())


def rendered(values: dict[str, str], errors: dict[str, list[str]] | None = None) -> str:
    shown = form_fields(fields(), values, errors or {})
    return "".join(
        render_to_string("dashboard/_parameter_field.html", {"one": one}) for one in shown
    )


def test_defaults_sent_back_are_the_defaults() -> None:
    """The text in an input must stand for the number behind it, however large or long."""
    shown = {one["field"].name: one["value"] for one in form_fields(fields(), {}, {})}
    sent = {name: "true" if value is True else value for name, value in shown.items()}
    assert Mixed.from_mapping(parameters(fields(), sent)) == Mixed()


def test_each_kind_has_its_input() -> None:
    html = rendered({})
    assert '<input id="p-flag" name="flag" type="checkbox" value="true" checked' in html
    assert '<option value="mms" selected>MMS</option>' in html
    assert '<option value="ic">IC</option>' in html
    assert 'name="limit" inputmode="decimal" value=""' in html
    assert 'name="sweeps" inputmode="decimal" value="1000000"' in html
    assert '<span class="unit">queries</span>' in html


def test_labels_are_titles_without_the_letters_of_papers() -> None:
    html = rendered({})
    assert '<label for="p-share">Free part</label>' in html
    assert "How much." in html
    assert '<label for="p-sweeps">Sweeps</label>' in html
    assert "In the paper" not in html


def test_what_was_sent_stays_in_the_inputs_beside_its_faults() -> None:
    """A box that was not ticked stays so, although it is ticked by default."""
    html = rendered({"rule": "ic", "limit": "<x>"}, {"limit": ["Must be a whole number"]})
    assert 'type="checkbox" value="true" aria' in html
    assert '<option value="ic" selected>' in html
    assert 'value="&lt;x&gt;"' in html
    assert "Must be a whole number" in html


@pytest.mark.parametrize(
    ("sent", "given"),
    [
        ({}, {"flag": False}),
        ({"flag": "true", "rule": "ic", "limit": "3"}, {"flag": True, "rule": "ic", "limit": 3}),
        ({"limit": "none", "sweeps": " "}, {"flag": False, "limit": None}),
    ],
)
def test_text_becomes_values(sent: dict[str, str], given: dict[str, Any]) -> None:
    """A box that is not ticked is not sent; a field left empty takes its default."""
    assert parameters(fields(), sent) == given


def test_text_of_another_kind_is_refused_at_its_field() -> None:
    with pytest.raises(Invalid) as caught:
        parameters(fields(), {"flag": "maybe", "limit": "1.5", "share": "Much"})
    assert caught.value.fields == {
        "flag": ["Must be true or false, not 'maybe'"],
        "limit": ["Must be a whole number, not '1.5'"],
        "share": ["Must be a number, not 'Much'"],
    }
