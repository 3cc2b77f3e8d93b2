"""Loads modules at their first use: those that are costly to import and that most starts of the program do not need.

The one exception to imports at the top of a module. A test checks that every place named in the package exists, and
that layers hold here, too.
"""

from importlib import import_module
from typing import Any


def load(place: str) -> Any:
    """The object at `package.module:name`. Raises what importing it raises."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
