"""How files of flows and of their tests are named."""

from pathlib import Path
from typing import Final

SUFFIX: Final = ".flowtest.yaml"
"""The end of the names of flow tests."""

_DEFINITION_WORDS: Final = (".flow", ".fdl", ".fnf", ".workflow")


def flow_name_of(file: Path) -> str:
    """The name of the flow that a file defines: `order` for `order.yaml`, `order.flow.yml` and `order.fdl.yaml`."""
    return next((file.stem.removesuffix(each) for each in _DEFINITION_WORDS if file.stem.endswith(each)), file.stem)
