"""The command `flowserver schema`: JSON Schemas by which editors complete and check flows and flow tests."""

from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from flowserver import editing
from flowserver.base.limits import Limits
from flowserver.cli.options import LimitsFlag, read_language_settings
from flowserver.cli.printable import json_text
from flowserver.editing.flow_schema import flow_schema
from flowserver.editing.flow_test_schema import flow_test_schema

FOLDER: Final = Path(editing.__file__).with_name("schemas")
"""The schemas under the default limits, as files."""

Kind = Annotated[
    Literal["flow", "flowtest"], typer.Argument(metavar="[flow|flowtest]", help="Of definitions, or of flow tests.")
]
PathFlag = Annotated[
    bool, typer.Option("--path", help="Print where the file is in this installation. It has the default limits.")
]


def schema(kind: Kind = "flow", path: PathFlag = False, limits: LimitsFlag = None) -> None:
    """Print the JSON Schema of flows, or of flow tests, for editors.

    An editor with a YAML language server completes and checks a file that begins with a line such as
    `# yaml-language-server: $schema=flow.schema.json`. A server has the schemas at `/v1/schemas/flow.json` and
    `/v1/schemas/flowtest.json`.

    \b
    Examples:
      flowserver schema > flow.schema.json
      flowserver schema flowtest > flowtest.schema.json
      flowserver schema --path
    """
    if path:
        typer.echo(FOLDER / f"{kind}.schema.json")
        return
    typer.echo(json_text(schema_of(kind, Limits.of(read_language_settings({"limits": limits}).limits)), indent=2))


def schema_of(kind: str, limits: Limits) -> object:
    """The schema of a kind of files."""
    return flow_test_schema(limits) if kind == "flowtest" else flow_schema(limits)
