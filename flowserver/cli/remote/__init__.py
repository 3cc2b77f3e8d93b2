"""Commands that talk to a running server, over `flowserver.client`. They import nothing of the server itself."""

import sys
from typing import Any, cast

# httpx loads a command line of its own, with click and rich, unless it cannot be imported: a third of what it takes.
cast(dict[str, Any], sys.modules).setdefault("httpx._main", None)
