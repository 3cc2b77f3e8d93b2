"""What a command has while it talks to a server: the client, and where its results and notes go."""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from flowserver.base.lazy_import import load
from flowserver.base.urls import SERVER_DEFAULT
from flowserver.base.utf8_texts import NotUtf8, read_utf8, utf8_text, with_line_feeds
from flowserver.cli.environment_variables import CA_FILE_VARIABLE, CONTEXT_VARIABLE, TOKEN_VARIABLE, URL_VARIABLE
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.printable import printable
from flowserver.cli.remote.contexts import Place, chosen_place
from flowserver.client.results import Execution

if TYPE_CHECKING:
    from flowserver.client import Client

_CLIENT: Final = "flowserver.client.blocking:Client"
"""Loaded with the first request: help and completion do without."""

RETRIES: Final = 1
"""A person sees an error and asks again; a program that must get through uses `flowserver.client`."""


class Session:
    """One command's talk with a server. `chosen` holds the common options that were given."""

    def __init__(self, chosen: Mapping[str, Any]) -> None:
        self._chosen = chosen
        self.command: str = chosen.get("command", "flowserver")
        """The command's words, such as `flowserver executions list`."""
        self.flags: Sequence[str] = chosen.get("flags", ())
        """The options that the command takes, such as `--cron`."""
        self.output: str = chosen.get("output", "table")
        self.quiet: bool = chosen.get("quiet", False)
        self.asked_flow: str | None = None
        """The flow that the command is about, for a suggestion if there is none of that name."""
        self.asked_name: str | None = None
        """The execution, schedule or function that it is about."""
        self.asked_alias: str | None = None
        """The alias that it is about."""

    @cached_property
    def client(self) -> "Client":
        """The connection to the server."""
        client: Client = load(_CLIENT)(self.url, self.token, ca_file=self.ca_file, retries=RETRIES)
        return client

    @property
    def ca_file(self) -> str | None:
        """The certificates to trust, if they are named."""
        found = self._chosen.get("ca_file") or os.environ.get(CA_FILE_VARIABLE) or self._place.ca_file
        return None if found is None else str(found)

    def at(self, url: str | None) -> "Session":
        """The same with the server that a file names, unless an option or a variable names one."""
        is_named = any(self._chosen.get(name) for name in ("server", "context")) or any(
            os.environ.get(name) for name in (URL_VARIABLE, CONTEXT_VARIABLE)
        )
        return self if url is None or is_named else Session({**self._chosen, "server": url})

    @property
    def given_place(self) -> Place:
        """What was given of a server with options."""
        chosen = self._chosen
        token = None if chosen.get("token") is None else secret_of_file(chosen["token"], "--token", TOKEN_VARIABLE)
        ca_file = chosen.get("ca_file")
        return Place(chosen.get("server"), token, None if ca_file is None else str(ca_file.resolve()))

    def executions(self, flow: str | None, **wanted: Any) -> Iterator[Execution]:
        """Executions of the flow, or of all, the newest first."""
        return self.client.executions(None if flow is None else self.flow(flow), **wanted)

    def close(self) -> None:
        """Close the connection, if there is one."""
        if "client" in self.__dict__:
            self.client.close()

    @cached_property
    def url(self) -> str:
        """The address of the server."""
        if self._chosen.get("server"):
            return str(self._chosen["server"])
        if self._chosen.get("context"):
            return self._place.server or SERVER_DEFAULT
        return os.environ.get(URL_VARIABLE) or self._place.server or SERVER_DEFAULT

    @property
    def is_colourful(self) -> bool:
        """Whether colours are wanted; where the output is no terminal there are none anyway."""
        return not self._chosen.get("no_color") and not os.environ.get("NO_COLOR")

    def coloured(self, text: str, colour: str) -> str:
        """The text in a colour, if colours are wanted; typer leaves them out where stdout is no terminal."""
        return typer.style(text, fg=colour) if colour and self.is_colourful else text

    def note(self, text: str) -> None:
        """Say something on stderr, unless `-q` was given."""
        if not self.quiet:
            typer.echo(printable(text), err=True)

    def executions_of(self, texts: Sequence[str]) -> list[tuple[str, str]]:
        """The flow and the name of each FLOW/NAME; raises CommandFailed, which says how FLOW NAME is written."""
        if len(texts) == 2 and "/" not in "".join(texts):
            raise CommandFailed(f"an execution is written FLOW/NAME: {self.command} {'/'.join(texts)}", ExitCode.USAGE)
        return [self.execution(each) for each in texts]

    def execution(self, text: str) -> tuple[str, str]:
        """The flow and the name of FLOW/NAME; raises CommandFailed for another text."""
        return self.named(text, "an execution")

    def named(self, text: str, what: str) -> tuple[str, str]:
        """The same for something else that belongs to a flow."""
        flow, slash, name = text.partition("/")
        if not (flow and slash and name):
            noun = what.rpartition(" ")[2]
            hint = f"those of a flow: flowserver {noun}s list --flow {flow or 'FLOW'}"
            raise CommandFailed(f"{what} is written FLOW/NAME, not {text!r}; {hint}", ExitCode.USAGE)
        return self.flow(flow), self.about(name)

    def flow(self, name: str) -> str:
        """The name of the flow that the command is about."""
        self.asked_flow = name
        return name

    def about(self, name: str) -> str:
        """The name of the execution, schedule or function that the command is about."""
        self.asked_name = name
        return name

    def alias(self, name: str) -> str:
        """The name of the alias that the command is about."""
        self.asked_alias = name
        return name

    @cached_property
    def token(self) -> str | None:
        """The bearer token, if there is one."""
        given = self._chosen.get("token")
        if given is not None:
            return secret_of_file(given, "--token", TOKEN_VARIABLE)
        if self._chosen.get("context") and self._place.token is not None:
            return self._place.token
        return secret_of_variable(TOKEN_VARIABLE) or self._place.token

    @cached_property
    def _place(self) -> Place:
        """The context; none unless it is named with an option, if the address is given: its token is another one."""
        if self._chosen.get("context"):
            return chosen_place(self._chosen["context"])
        if self._chosen.get("server") or os.environ.get(URL_VARIABLE):
            return Place()
        return chosen_place(os.environ.get(CONTEXT_VARIABLE))


def secret_of_file(text: str, option: str, variable: str) -> str:
    """The secret in the file that `@FILE` names; raises CommandFailed for a secret that was typed."""
    if not text.startswith("@"):
        reason = f"{option} takes a file, `{option} @FILE`: other users of this machine can read what is typed"
        raise CommandFailed(f"{reason}; or set {variable}", ExitCode.USAGE)
    return read_text(text[1:]).strip()


def secret_of_variable(variable: str) -> str | None:
    """The secret that a variable holds, or that is in the file that its `@FILE` names; None if it is not set."""
    text = os.environ.get(variable)
    return read_text(text[1:]).strip() if text and text.startswith("@") else text


def read_text(name: str) -> str:
    """The text of a file, or of standard input for `-`."""
    try:
        if name == "-":
            return with_line_feeds(utf8_text(typer.get_binary_stream("stdin").read()))
        return read_utf8(Path(name))
    except NotUtf8 as error:
        raise CommandFailed(f"{name}: {error}") from None
