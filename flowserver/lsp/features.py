"""What editors ask for: navigation, changes, explanations, completion."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from lsprotocol import types

from flowserver.editing.completion import completions
from flowserver.editing.completion_items import Item
from flowserver.editing.cursor import cursor_at
from flowserver.editing.files import Definition, FlowTest
from flowserver.editing.fixes import fixes_of
from flowserver.editing.flow_test_completion import flow_test_completions
from flowserver.editing.hover import hover_at
from flowserver.editing.step_names import (
    CannotRename,
    name_extent,
    renamed,
)
from flowserver.editing.symbols import symbols_of
from flowserver.editing.texts import Extent
from flowserver.invokers.error_names import ErrorName
from flowserver.lsp.asked import Asked
from flowserver.lsp.language_server import FlowLanguageServer
from flowserver.lsp.refusals import Refused
from flowserver.lsp.shown import completion_item

_ERRORS: Final = {str(name): name.when for name in ErrorName if "{" not in name}
"""When the errors of calls come up."""

F = TypeVar("F", bound=Callable[..., Any])


def add_features(server: FlowLanguageServer) -> None:
    """Let the server offer all of them."""
    _add_navigation(server)
    _add_changes(server)
    _add_explanations(server)


def offers(server: FlowLanguageServer, method: str, options: Any = None) -> Callable[[F], F]:
    """Turn a function into what the server does for a method of the protocol."""
    registered: Callable[[F], F] = server.feature(method, options)
    return registered


def _asked(server: FlowLanguageServer, params: Any) -> Asked | None:
    opened = server.files.get(params.text_document.uri)
    return None if opened is None else Asked(server, opened, params.position)


def _add_navigation(server: FlowLanguageServer) -> None:
    @offers(server, types.TEXT_DOCUMENT_DEFINITION)
    def definition(params: types.DefinitionParams) -> types.Location | None:
        asked = _asked(server, params)
        if asked is None:
            return None
        if found := asked.step():
            return asked.location(found[0], name_extent(found[1], found[2]))
        named = asked.named_file()
        return None if named is None else asked.location(named, Extent(0, 0))

    @offers(server, types.TEXT_DOCUMENT_REFERENCES)
    def all_references(params: types.ReferenceParams) -> list[types.Location]:
        asked = _asked(server, params)
        found = [] if asked is None else list(asked.places())
        return found if params.context.include_declaration else found[1:]

    @offers(server, types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlights(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
        asked = _asked(server, params)
        found = () if asked is None else asked.places()
        return [types.DocumentHighlight(place.range) for place in found if place.uri == params.text_document.uri]

    @offers(server, types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        opened = server.files.get(params.text_document.uri)
        if opened is None:
            return []
        shown = server.shown(opened)
        return [shown.symbol(each) for each in symbols_of(opened.file)]


def _add_changes(server: FlowLanguageServer) -> None:
    @offers(server, types.TEXT_DOCUMENT_PREPARE_RENAME)
    def can_rename(params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
        asked = _asked(server, params)
        found = None if asked is None else asked.step()
        if asked is None or found is None:
            return None
        here = next((each.range for each in asked.places() if _holds(each, params)), None)
        return None if here is None else types.PrepareRenamePlaceholder(here, found[2].name)

    @offers(server, types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        asked = _asked(server, params)
        found = None if asked is None else asked.step()
        if asked is None or found is None:
            return None
        path, file, step = found
        changes: dict[str, list[types.TextEdit]] = {}
        try:
            for changed, edit in renamed(file, step, params.new_name, path, asked.files):
                if location := asked.location(changed or path, edit.extent):
                    changes.setdefault(location.uri, []).append(types.TextEdit(location.range, edit.text))
        except CannotRename as error:
            raise Refused(str(error)) from None
        return types.WorkspaceEdit(changes)

    @offers(
        server,
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix]),
    )
    def fixes(params: types.CodeActionParams) -> list[types.CodeAction]:
        opened = server.files.get(params.text_document.uri)
        if opened is None:
            return []
        shown = server.shown(opened)
        start, end = shown.offset(params.range.start), shown.offset(params.range.end)
        marks = [mark for mark in server.marks_of(opened) if mark.extent.start <= end and start <= mark.extent.end]
        return [
            shown.action(fix, opened.uri)
            for mark in marks
            for fix in fixes_of(mark, opened.file.text, is_definition=isinstance(opened.file, Definition))
        ]


def _holds(location: types.Location, params: types.PrepareRenameParams) -> bool:
    is_here = location.uri == params.text_document.uri
    return is_here and location.range.start <= params.position <= location.range.end


def _add_explanations(server: FlowLanguageServer) -> None:
    @offers(server, types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        asked = _asked(server, params)
        found = None if asked is None else hover_at(asked.file, asked.offset, asked.path, asked.files, _ERRORS)
        if asked is None or found is None:
            return None
        markdown = types.MarkupContent(types.MarkupKind.Markdown, found.markdown)
        return types.Hover(markdown, asked.shown.range(found.extent))

    @offers(server, types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", "$"]))
    def complete(params: types.CompletionParams) -> types.CompletionList:
        asked = _asked(server, params) or _asked_of_blank(server, params)
        found = None if asked is None else _completions(asked)
        if asked is None or found is None:
            return types.CompletionList(is_incomplete=False, items=[])
        extent, items = found
        range_ = asked.shown.range(extent)
        knows_snippets = server.knows_snippets
        listed = [completion_item(number, item, range_, knows_snippets) for number, item in enumerate(items)]
        return types.CompletionList(is_incomplete=False, items=listed)


def _asked_of_blank(server: FlowLanguageServer, params: types.CompletionParams) -> Asked | None:
    """The place in a file that is empty yet, and so may become a definition."""
    document = server.workspace.text_documents.get(params.text_document.uri)
    blank = None if document is None else server.files.blank(document.uri, document.source)
    return None if blank is None else Asked(server, blank, params.position)


def _completions(asked: Asked) -> tuple[Extent, list[Item]] | None:
    cursor = cursor_at(asked.file, asked.offset)
    if cursor is None:
        return None
    if isinstance(asked.file, FlowTest):
        return flow_test_completions(asked.file, cursor, asked.path, asked.files)
    return completions(asked.file, cursor, _ERRORS) if isinstance(asked.file, Definition) else None
