"""Functions and files stay small enough to be read at a glance."""

from tests.tidy.source_files import functions_of, source_files

FUNCTION_LINES_MAX = 60
FILE_LINES_MAX = 400


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
