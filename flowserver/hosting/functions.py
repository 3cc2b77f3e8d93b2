"""The hosted functions: loads each handler's Python file and keeps it, as a function instance in the cloud would.

A file is loaded once for every function that names it, so a function's module-level state lasts from call to call
and is its own, as in the cloud, where each function has instances of its own.
"""

import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from flowserver.hosting.errors import HostingError
from flowserver.hosting.host_file import HostFile

Handler = Callable[[bytes, Any], Any]
"""`handler(event, context)`: the event as bytes, the context as in `context`."""


@dataclass(frozen=True, slots=True)
class HostedFunction:
    """A function that is ready to be called."""

    service: str
    name: str
    handler: Handler
    handler_name: str
    """As the cloud writes it: `file.function`."""
    timeout_seconds: int


HostedFunctions = Mapping[str, HostedFunction]
"""The functions by their titles: `service/function`."""


def load_functions(host_file: HostFile, folder: Path) -> HostedFunctions:
    """Load every handler, files relative to `folder`; raises HostingError for the first that cannot be."""
    hosted: dict[str, HostedFunction] = {}
    for title, entry in host_file.functions.items():
        service, _, name = title.partition("/")
        file, _, attribute = entry.handler.rpartition(":")
        module = _load_module(f"_hosted_{len(hosted)}_{Path(file).stem}", folder / file, title)
        handler = getattr(module, attribute, None)
        if not callable(handler):
            raise HostingError(f"{title}: {folder / file} defines no function {attribute}")
        handler_name = f"{Path(file).stem}.{attribute}"
        hosted[title] = HostedFunction(service, name, handler, handler_name, entry.timeout_seconds)
    return hosted


def _load_module(module_name: str, file: Path, title: str) -> ModuleType:
    if not file.is_file():
        raise HostingError(f"{title}: there is no file {file}")
    _make_importable(file.resolve().parent)
    spec = importlib.util.spec_from_file_location(module_name, file.resolve())
    assert spec is not None and spec.loader is not None  # the host file only takes names that end in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses and pickle look their module up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise HostingError(f"{title}: {file} cannot be loaded: {type(error).__name__}: {error}") from error
    return module


def _make_importable(folder: Path) -> None:
    """Let a handler import the files beside it, as the code folder of a cloud function does."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
