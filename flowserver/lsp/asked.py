"""A place of an open file that an editor asks about."""

from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types

from flowserver.editing.files import Definition, EditedFile, FlowTest
from flowserver.editing.outline import StepEntry
from flowserver.editing.step_names import mention_at, references, step_at, step_of_mention
from flowserver.editing.texts import Extent
from flowserver.lsp.language_server import FlowLanguageServer
from flowserver.lsp.open_files import OpenFile, path_of
from flowserver.lsp.shown import Shown


class Asked:
    """The place, and what is known of it."""

    def __init__(self, server: FlowLanguageServer, opened: OpenFile, position: types.Position) -> None:
        self.files = server.files
        self.uri = opened.uri
        self.path = path_of(opened.uri)
        self.file: EditedFile = opened.file
        self.shown = server.shown(opened)
        self.offset = self.shown.offset(position)
        self._units = server.units

    def step(self) -> tuple[Path | None, Definition, StepEntry] | None:
        """The step that is named here, with its definition."""
        if isinstance(self.file, Definition):
            step = step_at(self.file, self.offset)
            return None if step is None else (self.path, self.file, step)
        if isinstance(self.file, FlowTest) and self.path is not None:
            mention = mention_at(self.file, self.offset)
            return None if mention is None else step_of_mention(mention, self.file, self.path, self.files)
        return None

    def location(self, path: Path | None, extent: Extent) -> types.Location | None:
        """A place of a file; None for this file."""
        if path is None:
            return types.Location(self.uri, self.shown.range(extent))
        found = self.files.of_path(path)
        if found is None:
            return None
        return types.Location(found[0], Shown(found[1].text, self._units).range(extent))

    def places(self) -> Iterator[types.Location]:
        """Every place that names the step; the first is its own name."""
        found = self.step()
        if found is None:
            return
        path, definition, step = found
        for place in references(definition, step, path, self.files):
            if location := self.location(place.file or path, place.extent):
                yield location

    def named_file(self) -> Path | None:
        """The definition whose file is named here in a flow test."""
        found = self.file.at(self.offset) if isinstance(self.file, FlowTest) else None
        if found is None or found.key is not None or found.spot.attribute not in ("flow", "real") or self.path is None:
            return None
        return self.path.parent / getattr(found.spot.node, "text", "")
