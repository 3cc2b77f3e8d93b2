"""The hosted functions: loads each handler's Python file and keeps it, as a function instance in the cloud would.

A file is loaded once for every function that names it, so a function's module-level state lasts from call to call, is
shared with its hooks and is its own, as in the cloud, where each function has instances of its own.
"""

import importlib.util
import linecache
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

from flowserver.client.results import WITHOUT_SERVICE
from flowserver.hosting.errors import HandlerFailed, HostingMissing, HostingMistake
from flowserver.hosting.host_file import HOOK_SECONDS_DEFAULT, FunctionEntry, HostFile

Handler = Callable[[bytes, Any], Any]
"""`handler(event, context)`: the event as bytes, the context as in `context`."""

Hook = Callable[[Any], Any]
"""A hook such as `initialize(context)`; its result is ignored."""


@dataclass(frozen=True, slots=True)
class HostedFunction:
    """A function that is ready to be called."""

    service: str
    name: str
    handler: Handler
    handler_name: str
    """As the cloud writes it: `file.function`."""
    timeout_seconds: int
    initializer: Hook | None = None
    """Called before the first call; if it fails, so does the call, and the next one calls it again."""
    pre_freeze: Hook | None = None
    """Called after a call when no other is under way."""
    pre_stop: Hook | None = None
    """Called when a call was stopped from outside, and at the end of the program."""
    hook_seconds: int = HOOK_SECONDS_DEFAULT
    concurrency_max: int | None = None
    waiting_max: int | None = None


HostedFunctions = Mapping[str, HostedFunction]
"""The functions by their titles: `service/function`."""


def load_functions(host_file: HostFile, folder: Path) -> HostedFunctions:
    """Load every handler, files relative to `folder`; raises HostingError for the first that cannot be."""
    return {title: _load_function(title, entry, folder) for title, entry in host_file.functions.items()}


def load_function(title: str, handler: str, folder: Path, timeout_seconds: int) -> HostedFunction:
    """Load one handler, `file.py:name` relative to `folder`; raises HostingError."""
    return _load_function(title, FunctionEntry(handler=handler, timeoutSeconds=timeout_seconds), folder)


def _load_function(title: str, entry: FunctionEntry, folder: Path) -> HostedFunction:
    service, _, name = title.partition("/")
    code = _Code(title, folder)
    file, _, attribute = entry.handler.rpartition(":")
    return HostedFunction(
        service="" if service == WITHOUT_SERVICE else service,
        name=name,
        handler=code.find(entry.handler),
        handler_name=f"{Path(file).stem}.{attribute}",
        timeout_seconds=entry.timeout_seconds,
        initializer=code.find_hook(entry.initializer),
        pre_freeze=code.find_hook(entry.pre_freeze),
        pre_stop=code.find_hook(entry.pre_stop),
        hook_seconds=entry.hook_seconds,
        concurrency_max=entry.concurrency_max,
        waiting_max=entry.waiting_max,
    )


class _Code:
    """The files of one function, each loaded once."""

    def __init__(self, title: str, folder: Path) -> None:
        self._title = title
        self._folder = folder
        self._modules: dict[str, ModuleType] = {}

    def find(self, handler: str) -> Any:
        """The callable at `file.py:name`; raises HostingError."""
        file, _, attribute = handler.rpartition(":")
        if file not in self._modules:
            name = f"_hosted_{next(_numbers)}_{Path(file).stem}"
            self._modules[file] = _load_module(name, self._folder / file, self._title)
        found = getattr(self._modules[file], attribute, None)
        if not callable(found):
            raise HostingMistake(f"{self._title}: {self._folder / file} defines no function {attribute}")
        return found

    def find_hook(self, handler: str | None) -> Hook | None:
        """The hook at `file.py:name`, or None if there is none; raises HostingError."""
        return None if handler is None else self.find(handler)


_numbers = count()
"""Keeps the modules of equal file names apart."""


def _load_module(module_name: str, file: Path, title: str) -> ModuleType:
    if not file.is_file():
        raise HostingMissing(f"{title}: there is no file {file}")
    _make_importable(file.resolve().parent)
    spec = importlib.util.spec_from_file_location(module_name, file.resolve())
    assert spec is not None and spec.loader is not None  # the host file only takes names that end in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses and pickle look their module up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise HandlerFailed(f"{title}: {file} cannot be loaded: {type(error).__name__}: {error}") from error
    _keep_sources(file.resolve())
    return module


def _keep_sources(file: Path) -> None:
    """Let tracebacks show the lines of a file, and of imported files beside it, that run, also after an edit.

    `linecache` reads a file anew when its time differs, unless the time that it has kept is None.
    """
    linecache.cache.pop(str(file), None)
    paths = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    for path in {path for path in paths if isinstance(path, str) and Path(path).parent == file.parent}:
        lines = linecache.getlines(path)
        linecache.cache[path] = (sum(map(len, lines)), None, lines, path)


def _make_importable(folder: Path) -> None:
    """Let a handler import the files beside it, as the code folder of a cloud function does."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
