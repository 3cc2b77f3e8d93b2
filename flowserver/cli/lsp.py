"""The command `flowserver lsp`: a language server for editors."""

from typing import Final

import typer

from flowserver.base.lazy_import import load
from flowserver.base.limits import Limits
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.options import LenientFlag, LimitsFlag, read_language_settings

_SERVE: Final = "flowserver.lsp.server:serve"
"""Loaded when it is asked for: its library is an extra."""


def lsp(limits: LimitsFlag = None, lenient: LenientFlag = None) -> None:
    """Serve an editor: findings, completion, navigation.

    You do not type this command: an editor starts it, for YAML files. It speaks the Language Server Protocol over stdin
    and stdout. Findings are those of `flowserver validate` and `flowserver prove`, and the mistakes of flow tests.

    Exit code 0: the editor shut it down. 1: the editor went away. 2: the extra `lsp` is not installed.

    \b
    Examples:
      flowserver lsp
      flowserver lsp --limits cloud
    """
    settings = read_language_settings({"limits": limits, "lenient": lenient})
    try:
        serve = load(_SERVE)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("flowserver"):
            raise
        message = f"the language server needs the package {error.name}: pip install 'flowserver[lsp]'"
        raise CommandFailed(message, ExitCode.USAGE) from None
    if not serve(Limits.of(settings.limits), lenient=settings.lenient):
        raise typer.Exit(ExitCode.FAILED)
