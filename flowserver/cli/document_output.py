"""Documents on stdout, for programs."""

from typing import Any, Final

import typer

from flowserver.base.lazy_import import load
from flowserver.cli.printable import json_text

_YAML: Final = "flowserver.cli.yaml_text:yaml_text"
"""Loaded when it is asked for."""


def show_document(output: str, document: Any) -> None:
    """Print a JSON value as one document: YAML if the output is `yaml`, else JSON."""
    if output == "yaml":
        typer.echo(load(_YAML)(document), nl=False)
    else:
        typer.echo(json_text(document, indent=2))
