"""Random key groupings of the catalog, with parameters that make a difference in short tests."""

import random
from typing import Any

from algorithms.partitioning.catalog import GROUPINGS, fields_of, grouping_text
from algorithms.vocabulary import ParameterField


def random_grouping(rng: random.Random) -> str:
    """Return the text of any key grouping, about half of its parameters drawn at random."""
    name = rng.choice(list(GROUPINGS))
    fields = [field for field in fields_of(name) if rng.random() < 0.5]
    values = {field.name: _value(rng, field) for field in fields}
    if values.get("lower", 0.75) >= values.get("upper", 0.85):
        values |= {"lower": 0.5, "upper": 0.6}
    return grouping_text(name, values)


def _value(rng: random.Random, field: ParameterField) -> Any:
    """Return a value within the bounds, around the default or at the least."""
    if field.type is bool:
        return rng.random() < 0.5
    if field.choices:
        return rng.choice(field.choices)
    assert field.minimum is not None
    assert field.maximum is not None
    assert isinstance(field.default, int | float)
    least = field.minimum
    value = rng.choice((least, least + (float(field.default) - least + 1) * rng.random()))
    value = min(field.maximum, value)
    return int(value) if field.type is int else value
