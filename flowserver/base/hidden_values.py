"""How values that are secrets are shown."""

from typing import Final

HIDDEN: Final = "(hidden)"
"""Shown in place of a value that is a secret."""
