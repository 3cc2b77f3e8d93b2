"""The command `flowserver validate`: what a server would say to a definition, without a server."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from flowserver.api.rest.models.definition_checks import DefinitionReport
from flowserver.base.limits import Limits
from flowserver.cli.document_output import show_document
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.options import LenientFlag, LimitsFlag, read_settings
from flowserver.cli.resource_files import NO_DEFINITIONS, files_in
from flowserver.cli.server_options import formatted
from flowserver.language.diagnostics import DefinitionRejected, Diagnostic, Severity, render
from flowserver.language.parser import parse

STDIN: Final = "-"
_COLOURS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow"}

Files = Annotated[
    list[str],
    typer.Argument(metavar="PATH", help="Definitions in YAML or JSON, or folders of them; - is standard input."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")]


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A definition that could be read, and what was found in it."""

    name: str
    text: str
    found: tuple[Diagnostic, ...]

    def count(self, severity: Severity) -> int:
        """How many findings are of that severity."""
        return sum(each.severity is severity for each in self.found)


@formatted
def validate(
    output: str,
    files: Files,
    limits: LimitsFlag = None,
    lenient: LenientFlag = None,
    strict: Strict = False,
) -> None:
    """Check definitions, without a server.

    Shows every mistake with its place, a stable id and, where there is one, a hint.
    `!Ref service/function`, which deployment tools expand, is accepted here. In folders it passes over `flows.yaml`,
    `functions.yaml` and `schedules.yaml`: `flowserver apply --dry-run` checks these with a server.

    Exit code 0: no errors. 1: errors, or warnings with --strict. 3: a file cannot be read.

    \b
    Examples:
      flowserver validate flow.yaml
      flowserver validate flows/
      flowserver validate --strict -o json flows/
      generate-flow | flowserver validate -
    """
    settings = read_settings({"limits": limits, "lenient": lenient})
    in_force = Limits.of(settings.limits)
    texts = {name: read_definition(name) for name in dict.fromkeys(names_in(files))}
    given = [(name, text) for name, text in texts.items() if text is not None]
    checked = [check(name, text, in_force, lenient=settings.lenient) for name, text in given]
    if output == "name":
        for each in checked:
            if each.count(Severity.ERROR):
                typer.echo(each.name)
    elif output != "table":
        show_document(output, [_as_json(each) for each in checked])
    else:
        _show(checked)
    if len(checked) < len(texts):
        raise typer.Exit(ExitCode.NOT_FOUND)
    if any(each.count(Severity.ERROR) or (strict and each.found) for each in checked):
        raise typer.Exit(ExitCode.FAILED)


def check(name: str, text: str, limits: Limits, *, lenient: bool = False) -> CheckedFile:
    """Parse a definition for what can be said about it."""
    try:
        return CheckedFile(name, text, parse(text, limits, allow_ref_tags=True, lenient=lenient).warnings)
    except DefinitionRejected as error:
        return CheckedFile(name, text, error.diagnostics)


def names_in(paths: Iterable[str]) -> Iterator[str]:
    """The files, and the definitions in folders; raises CommandFailed for a folder without any."""
    for path in paths:
        if path != STDIN and Path(path).is_dir():
            found = files_in([Path(path)])
            yield from (str(file) for file in found if file.name not in NO_DEFINITIONS)
        else:
            yield path


def read_definition(name: str) -> str | None:
    """The text, with its line ends as they are; None, after a line on stderr, if it cannot be had."""
    try:
        content = typer.get_binary_stream("stdin").read() if name == STDIN else Path(name).read_bytes()
        return content.decode()
    except OSError as error:
        reason = error.strerror
    except UnicodeDecodeError as error:
        reason = f"not UTF-8 text (at byte {error.start + 1})"
    typer.echo(f"flowserver: {typer.format_filename(name)}: {reason}", err=True)
    return None


def _as_json(checked: CheckedFile) -> dict[str, object]:
    return {"file": checked.name, **DefinitionReport.of(checked.found).model_dump()}


def _show(files: Iterable[CheckedFile]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for checked in files:
        name = typer.format_filename(checked.name)
        for found in checked.found:
            console.print(coloured(render(found, checked.text, name), found))
        console.print(Text(f"{name}: {_summary(checked)}"))


def coloured(rendered: str, found: Diagnostic) -> Text:
    """Colours disappear by themselves where the output is no terminal."""
    colour = _COLOURS[found.severity]
    head, _, rest = rendered.partition("\n")
    text = Text().append(head, "bold")
    text.highlight_words([f"{found.severity}[{found.id}]"], colour)
    excerpt = Text(f"\n{rest}")
    excerpt.highlight_regex(r"(?m)(?<=\| ) *\^+$", colour)
    return text.append_text(excerpt)


def _summary(checked: CheckedFile) -> str:
    errors, warnings = checked.count(Severity.ERROR), checked.count(Severity.WARNING)
    parts = ["valid"] if not errors else [counted(errors, "error")]
    return ", ".join(parts + ([counted(warnings, "warning")] if warnings else []))


def counted(count: int, noun: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{count} {noun}" + ("" if count == 1 else "s")
