"""Arrow without its stubs, which lack overloads that the engine uses."""

from importlib import import_module
from typing import Any

pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")
