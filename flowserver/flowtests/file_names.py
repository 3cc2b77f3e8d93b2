"""How flow test files are named."""

from typing import Final

SUFFIX: Final = ".flowtest.yaml"
"""The end of their names."""
