"""What real calls of flow tests reach, loaded with the first of them: most tests make none."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from flowserver.base.lazy_import import load
from flowserver.base.limits import Limits
from flowserver.flowtests.real_calls import Callee

_REAL_CALLS: Final = "flowserver.hosting.real_calls:RealCalls"


class RealCallees(AbstractContextManager["RealCallees"]):
    """Opens callees; close it after the tests."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._loaded: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def open(self, name: str, folder: Path) -> Callee:
        """The callee that a test file in this folder names; raises NotAvailable."""
        if self._loaded is None:
            self._loaded = load(_REAL_CALLS)(self._limits)
        opened: Callable[[str, Path], Callee] = self._loaded.open
        return opened(name, folder)

    def close(self) -> None:
        """Close connections, and unload handlers."""
        if self._loaded is not None:
            self._loaded.close()
