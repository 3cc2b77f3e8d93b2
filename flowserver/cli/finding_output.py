"""How `validate` and `prove` show findings: a person's text with places and ways, and documents."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from flowserver.analysis.rules import RULES, Finding, page_of
from flowserver.api.rest.models.definition_checks import Diagnostic
from flowserver.base.utf8_texts import NotUtf8, utf8_text
from flowserver.cli.resource_files import NO_DEFINITIONS, files_in
from flowserver.language.diagnostics import DIAGNOSTICS, Severity, render

STDIN: Final = "-"
_COLOURS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow"}

Files = Annotated[
    list[str],
    typer.Argument(metavar="PATH", help="Definitions in YAML or JSON, or folders of them; - is standard input."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")]

Found = tuple[Finding, ...]


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
        return utf8_text(content)
    except OSError as error:
        reason = error.strerror
    except NotUtf8 as error:
        reason = str(error)
    typer.echo(f"flowserver: {typer.format_filename(name)}: {reason}", err=True)
    return None


def count(findings: Found, severity: Severity) -> int:
    """How many findings are of that severity."""
    return sum(each.severity is severity for each in findings)


def is_valid(findings: Found) -> bool:
    """Whether a server takes the definition: only errors of the parser prevent that."""
    return not any(each.severity is Severity.ERROR and each.id in DIAGNOSTICS for each in findings)


def counted(number: int, noun: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def documents(findings: Found) -> list[dict[str, object]]:
    """The findings for programs."""
    return [Diagnostic.of(each).model_dump() for each in findings]


def show_findings(files: Iterable[tuple[str, str, Found, Iterable[str]]]) -> None:
    """Print the findings of each file, given with its name and its text, and then the lines that sum it up."""
    console = Console(highlight=False, soft_wrap=True)
    explained = None
    for path, text, findings, lines in files:
        name = typer.format_filename(path)
        for found in findings:
            explained = explained or (found.id if found.id in RULES else None)
            console.print(_coloured(render(found, text, name) + _way(found), found))
        for line in lines:
            console.print(Text(f"{name}: {line}"))
    if explained is not None:
        typer.echo(f"why a finding is true: flowserver prove --explain {explained}, or {page_of(explained)}", err=True)
        comment = f"# flowserver: ignore {explained} REASON"
        typer.echo(f"to suppress a finding, write behind the line or above the step: {comment}", err=True)


def _way(found: Finding) -> str:
    lines = [f"    line {each.line}: {each.name} {each.note}" for each in found.path]
    return "\n".join(["\n  way:", *lines]) if lines else ""


def _coloured(rendered: str, found: Finding) -> Text:
    """Colours disappear by themselves where the output is no terminal."""
    colour = _COLOURS[found.severity]
    head, _, rest = rendered.partition("\n")
    text = Text().append(head, "bold")
    text.highlight_words([f"{found.severity}[{found.id}]"], colour)
    excerpt = Text(f"\n{rest}")
    excerpt.highlight_regex(r"(?m)(?<=\| ) *\^+$", colour)
    return text.append_text(excerpt)
