"""Options whose values are plain are converted without pydantic, and to what typer converts them."""

import shlex
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from typer.exceptions import TyperException

from flowserver.cli.option_conversions import converted_if_needed, without_needless_conversions

Kind = Literal["table", "json"]


def _program(loose: bool):
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    @app.command()
    def show(
        words: Annotated[list[str], typer.Argument()],
        kind: Annotated[Kind, typer.Option(case_sensitive=False)] = "table",
        exact: Annotated[Kind | None, typer.Option()] = None,
        number: Annotated[int, typer.Option(min=1, max=16)] = 8,
        count: Annotated[int | None, typer.Option()] = None,
        file: Annotated[Path | None, typer.Option()] = None,
        folder: Annotated[Path | None, typer.Option(file_okay=False)] = None,
        all_of: Annotated[list[Path] | None, typer.Option()] = None,
        yes: Annotated[bool | None, typer.Option("--yes/--no")] = None,
    ) -> tuple:
        return words, kind, exact, number, count, file, folder, all_of, yes

    command = typer.main.get_command(app)
    return without_needless_conversions(command) if loose else command


def _result(command, given):
    try:
        return command.main(shlex.split(given), standalone_mode=False)
    except TyperException as error:
        return error.format_message()


@pytest.mark.parametrize(
    "given",
    [
        "",
        "a b",
        "a --kind JSON --exact json",
        "a --exact JSON",
        "a --kind yaml",
        "a --number 16 --count 0",
        "a --number 17",
        "a --number 0",
        "a --number x",
        "a --number 1.0",
        "a --number 007 --count -3",
        "a --count 99999999999999999999",
        "a --count ''",
        "a --file missing --folder missing",
        "a --file . --folder . --all-of x --all-of y",
        f"a --folder {__file__}",
        "a --yes",
        "a --no",
    ],
)
def test_values_become_what_typer_makes_of_them(given):
    assert _result(_program(True), given) == _result(_program(False), given)


def test_a_conversion_is_wrapped_once():
    parameter = _program(False).params[0]
    once = converted_if_needed(parameter)
    wrapped = once.process_value
    assert converted_if_needed(once).process_value is wrapped
