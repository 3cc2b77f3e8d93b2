"""Functions, constructors and files are short."""

import ast

from tests.tidy.source_files import functions_of, source_files

FUNCTION_LINES_MAX = 60
FILE_LINES_MAX = 400
CONSTRUCTOR_ARGUMENTS_MAX = 8


def test_functions_are_short() -> None:
    long = [
        f"{source.place(function)} {function.name}"
        for source in source_files()
        for function in functions_of(source)
        if (function.end_lineno or 0) - function.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert long == []


def test_files_are_short() -> None:
    long = [source.name for source in source_files() if len(source.text.splitlines()) > FILE_LINES_MAX]
    assert long == []


def test_constructors_are_short() -> None:
    """`self` does not count. Fields of dataclasses and structs are not constructors here."""
    long = [
        f"{source.place(function)} takes {count}"
        for source in source_files()
        for function in functions_of(source)
        if function.name == "__init__" and (count := arguments_of(function)) > CONSTRUCTOR_ARGUMENTS_MAX
    ]
    assert long == []


def arguments_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    return len([*given.posonlyargs, *given.args, *given.kwonlyargs]) - 1
