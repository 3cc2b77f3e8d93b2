"""Reads YAML files that people write: values and their line numbers. Knows nothing of what the files should hold.

Definitions of flows have a reader of their own (`language.source`), which goes on after a mistake.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from flowserver.base.utf8_texts import read_utf8


class YamlFileInvalid(Exception):
    """The file is not UTF-8, or not YAML, or a mapping in it has a key twice; the message says what and where."""


@dataclass(frozen=True)
class YamlFile:
    """A file's content, None if it is empty, and the place of each value."""

    content: Any
    _root: yaml.Node | None

    def line_of(self, place: Sequence[object]) -> int:
        """The line, from 1, of the value at these keys and indexes, as `place_of` finds it."""
        return self.place_of(place)[0]

    def place_of(self, place: Sequence[object]) -> tuple[int, int]:
        """The line and column, from 1, of the value at these keys and indexes: those of its key if it has one.

        If there is no such value, they are those of the last value on the path to it.
        """
        node, line, column = self._root, 1, 1
        for step in place:
            if isinstance(node, yaml.MappingNode):
                found = next(((key, value) for key, value in node.value if key.value == str(step)), None)
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                found = node.value[step], node.value[step]
            else:
                found = None
            if found is None:
                break
            mark, node = found[0].start_mark, found[1]
            line, column = mark.line + 1, mark.column + 1
        return line, column


def read_yaml(path: Path) -> YamlFile:
    """Read a file of one document. Raises OSError if it cannot be read, YamlFileInvalid if it is not such a file."""
    try:
        loader = _NoDuplicatesLoader(read_utf8(path))
        loader.name = path.name  # for its messages
        root = loader.get_single_node()
        return YamlFile(None if root is None else loader.construct_document(root), root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        said = ", ".join(part for part in (error.problem, error.context) if part)
        raise YamlFileInvalid(f"{place} is not valid YAML: {said}") from None
    except (ValueError, yaml.YAMLError) as error:  # ValueError: not UTF-8, or an impossible date
        raise YamlFileInvalid(f"{path} is not valid YAML: {error}") from None


class _NoDuplicatesLoader(yaml.SafeLoader):
    """Refuses duplicate keys. PyYAML keeps only the last of them, in silence, and so drops what the user wrote."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if str(key.value) in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} appears twice", key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)
