"""No module and no class has a name that fits everything."""

import ast

from tests.tidy.source_files import PACKAGE, source_files

EMPTY_MODULE_NAMES = {"util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"}
EMPTY_CLASS_ENDINGS = ("Util", "Utils", "Helper", "Manager")


def test_modules_have_specific_names() -> None:
    empty = [
        source.name
        for source in source_files()
        if EMPTY_MODULE_NAMES & set(source.path.relative_to(PACKAGE).with_suffix("").parts)
    ]
    assert empty == []


def test_classes_have_specific_names() -> None:
    empty = [
        f"{source.place(node)} {node.name}"
        for source in source_files()
        for node in source.nodes
        if isinstance(node, ast.ClassDef) and node.name.endswith(EMPTY_CLASS_ENDINGS)
    ]
    assert empty == []
