"""A language server for one editor: its open files, and the findings that it publishes.

An editor sends the whole text with every change: pygls counts lines in its own way, which for some characters is not
that of editors, so that parts of a text would go to wrong places. A definition is small enough.
"""

import asyncio
import logging
from functools import partial
from typing import Final

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.lsp.server import LanguageServer

import flowserver
from flowserver.base.limits import Limits
from flowserver.concurrency.threads import Threads
from flowserver.editing.files import Definition, FlowTest
from flowserver.editing.findings import Mark, marks_of_definition, marks_of_flow_test
from flowserver.editing.texts import Units
from flowserver.lsp.open_files import OpenFile, OpenFiles, path_of
from flowserver.lsp.shown import SOURCE, Shown

QUIET_SECONDS: Final = 0.2
"""A changed file is checked when it has not changed for so long."""

logger = logging.getLogger(__name__)

_SNIPPETS: Final = "text_document.completion.completion_item.snippet_support"


class FlowLanguageServer(LanguageServer):
    """A server for one editor."""

    def __init__(self, limits: Limits, *, lenient: bool = False) -> None:
        super().__init__(SOURCE, flowserver.__version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.files = OpenFiles(limits, lenient=lenient)
        self.is_shut_down = False
        self._checking = Threads("checking")
        self._checks: dict[str, asyncio.Task[None]] = {}

    @property
    def units(self) -> Units:
        """In what the editor counts columns."""
        return Units(self.workspace.position_encoding or Units.UTF_16)

    @property
    def knows_snippets(self) -> bool:
        """Whether the editor fills in places of what it completes."""
        return bool(get_capability(self.client_capabilities, _SNIPPETS, default=False))

    def shown(self, opened: OpenFile) -> Shown:
        """The places of an open file."""
        return Shown(opened.file.text, self.units)

    def take(self, uri: str, version: int | None, text: str, wait_seconds: float) -> None:
        """Take in the text of a file, and check it after a while."""
        opened = self.files.put(uri, version, text)
        if opened is None:
            return
        self._check_later(uri, wait_seconds)
        if isinstance(opened.file, Definition):
            for test in self.files.tests_open_on(uri):
                self._check_later(test.uri, QUIET_SECONDS)

    def close(self, uri: str) -> None:
        """Forget a file and its findings."""
        if check := self._checks.pop(uri, None):
            check.cancel()
        if self.files.get(uri) is not None:
            self.files.close(uri)
            self._publish(uri, None, [])

    def _check_later(self, uri: str, wait_seconds: float) -> None:
        if waiting := self._checks.pop(uri, None):
            waiting.cancel()
        self._checks[uri] = asyncio.get_running_loop().create_task(self._check(uri, wait_seconds))

    async def _check(self, uri: str, wait_seconds: float) -> None:
        await asyncio.sleep(wait_seconds)
        opened = self.files.get(uri)
        if opened is None:
            return
        shown = self.shown(opened)
        try:
            marks = await self._checking.run(partial(self._check_now, opened))
            diagnostics = [shown.diagnostic(mark, uri) for mark in marks]
        except Exception as error:
            logger.exception("the check of %s failed", uri)
            diagnostics = [shown.failure(error)]
        if self.files.get(uri) is opened:
            self._publish(uri, opened.version, diagnostics)

    def _check_now(self, opened: OpenFile) -> list[Mark]:
        if isinstance(opened.file, Definition):
            opened.file.learn()
        return self.marks_of(opened)

    def marks_of(self, opened: OpenFile) -> list[Mark]:
        """The findings of a file."""
        if isinstance(opened.file, Definition):
            return [*marks_of_definition(opened.file)]
        path = path_of(opened.uri)
        if isinstance(opened.file, FlowTest) and path is not None:
            return [*marks_of_flow_test(opened.file, path, self.files)]
        return []

    def _publish(self, uri: str, version: int | None, diagnostics: list[types.Diagnostic]) -> None:
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, version))
