"""Loads at its first use what is costly to import and what most starts of the program do without.

The one exception to imports at the top of a module. A test checks that every place named in the package exists, and
that layers hold here, too.
"""

from importlib import import_module
from typing import Any


def load(place: str) -> Any:
    """What stands at `package.module:name`. Raises what importing it raises."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
