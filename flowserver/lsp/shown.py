"""What the protocol shows, made of what `flowserver.editing` finds."""

from pathlib import Path
from typing import Final

from lsprotocol import types

import flowserver
from flowserver.analysis.rules import page_of
from flowserver.editing.completion_items import Item, ItemKind
from flowserver.editing.findings import Mark
from flowserver.editing.fixes import Fix
from flowserver.editing.symbols import GROUP, TEST, Symbol
from flowserver.editing.texts import Extent, Position, Text, Units
from flowserver.language.diagnostics import Severity

SOURCE: Final = "flowserver"

_ROOT: Final = Path(flowserver.__file__).parents[1]
"""The folder of a checkout, which has the pages; a wheel has none."""

_SEVERITIES: Final = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
}
_ITEM_KINDS: Final = {
    ItemKind.ATTRIBUTE: types.CompletionItemKind.Property,
    ItemKind.WORD: types.CompletionItemKind.Value,
    ItemKind.STEP: types.CompletionItemKind.Function,
    ItemKind.REFERENCE: types.CompletionItemKind.Reference,
    ItemKind.RESOURCE: types.CompletionItemKind.Module,
    ItemKind.TEMPLATE: types.CompletionItemKind.Snippet,
}
_SYMBOL_KINDS: Final = {
    "task": types.SymbolKind.Function,
    "wait": types.SymbolKind.Event,
    "pass": types.SymbolKind.Constant,
    "choice": types.SymbolKind.Enum,
    "parallel": types.SymbolKind.Module,
    "foreach": types.SymbolKind.Array,
    "succeed": types.SymbolKind.Boolean,
    "fail": types.SymbolKind.Boolean,
    GROUP: types.SymbolKind.Namespace,
    TEST: types.SymbolKind.Method,
}
_CHECK_FAILED: Final = "check-failed"
_NEVER_RUNS: Final = "unreachable-step"


class Shown:
    """Places of one text, in the units of an editor."""

    def __init__(self, text: Text, units: Units) -> None:
        self._text = text
        self._units = units

    def position(self, offset: int) -> types.Position:
        """A place."""
        line, character = self._text.position_of(offset, self._units)
        return types.Position(line, character)

    def range(self, extent: Extent) -> types.Range:
        """A part of the text."""
        return types.Range(self.position(extent.start), self.position(extent.end))

    def offset(self, position: types.Position) -> int:
        """The offset of a place."""
        return self._text.offset_at(Position(position.line, position.character), self._units)

    def failure(self, error: Exception) -> types.Diagnostic:
        """What takes the place of the findings when a check fails by a mistake of the server."""
        return types.Diagnostic(
            range=self.range(Extent(0, 0)),
            message=f"This text could not be checked: {type(error).__name__} in the language server, see its log.",
            severity=types.DiagnosticSeverity.Error,
            code=_CHECK_FAILED,
            source=SOURCE,
        )

    def diagnostic(self, mark: Mark, uri: str) -> types.Diagnostic:
        """A finding."""
        found = mark.found
        way = [
            types.DiagnosticRelatedInformation(types.Location(uri, self.range(extent)), note)
            for extent, note in mark.way
        ]
        return types.Diagnostic(
            range=self.range(mark.extent),
            message=mark.message,
            severity=_SEVERITIES[found.severity],
            code=found.id,
            code_description=_page_of(found.id),
            source=SOURCE,
            tags=[types.DiagnosticTag.Unnecessary] if found.id == _NEVER_RUNS else None,
            related_information=way or None,
        )

    def symbol(self, symbol: Symbol) -> types.DocumentSymbol:
        """An entry of the outline."""
        return types.DocumentSymbol(
            name=symbol.name,
            detail=symbol.detail,
            kind=_SYMBOL_KINDS.get(symbol.kind, types.SymbolKind.Object),
            range=self.range(symbol.extent),
            selection_range=self.range(symbol.name_extent),
            children=[self.symbol(each) for each in symbol.inner],
        )

    def action(self, fix: Fix, uri: str) -> types.CodeAction:
        """A change for a finding."""
        edit = types.TextEdit(self.range(fix.edit.extent), fix.edit.text)
        return types.CodeAction(
            title=fix.title,
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[self.diagnostic(fix.mark, uri)],
            is_preferred=fix.is_preferred,
            edit=types.WorkspaceEdit({uri: [edit]}),
        )


def _page_of(id: str) -> types.CodeDescription | None:
    page, _, anchor = page_of(id).partition("#")
    file = _ROOT / page
    return types.CodeDescription(file.as_uri() + (anchor and f"#{anchor}")) if file.is_file() else None


def completion_item(number: int, item: Item, range_: types.Range, knows_snippets: bool) -> types.CompletionItem:
    """An entry of a list of completions, which keeps its place in it."""
    about = types.MarkupContent(types.MarkupKind.Markdown, item.documentation) if item.documentation else None
    is_snippet = item.is_snippet and knows_snippets
    return types.CompletionItem(
        label=item.label,
        kind=_ITEM_KINDS[item.kind],
        detail=item.detail or None,
        documentation=about,
        sort_text=f"{number:04}",
        filter_text=item.label,
        insert_text_format=types.InsertTextFormat.Snippet if is_snippet else types.InsertTextFormat.PlainText,
        insert_text_mode=types.InsertTextMode.AdjustIndentation if is_snippet else None,
        text_edit=types.TextEdit(range_, item.insert if is_snippet else item.plain),
    )
