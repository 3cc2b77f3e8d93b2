"""The commands `flowserver functions …`: the registry of a running server, and hosting functions for it."""

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from flowserver.base.lazy_import import load
from flowserver.base.secret_references import is_only_references
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.flows import Limit
from flowserver.cli.remote.function_description import described
from flowserver.cli.remote.output import show_change, show_list, show_one
from flowserver.cli.remote.resources import SECRET_HEADERS
from flowserver.cli.remote.session import Session, secret_of_file, secret_of_variable
from flowserver.cli.server_options import takes_choices
from flowserver.client.results import WITHOUT_SERVICE, Json

_HOSTING: Final = [f"flowserver.hosting.serving:{name}" for name in ("run", "Choices", "server_in")]
"""Loaded by `serve` alone."""

SECRET_VARIABLE: Final = "FUNCTIONS_SECRET"  # noqa: S105 - a name, no secret

SIGNING_VARIABLE: Final = "FUNCTIONS_SIGNING_SECRETS"

functions = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[
    str,
    typer.Argument(
        metavar="[SERVICE/]FUNCTION", help="As in the resource; the service may have a qualifier: shop.prod/charge."
    ),
]
Url = Annotated[str, typer.Argument(metavar="URL", help="Where the server POSTs the calls.")]
TimeoutSeconds = Annotated[
    int | None, typer.Option("--timeout-seconds", help="Time for one call, unless the step sets its own.")
]
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="'NAME: VALUE'", help="Sent with every call. May be given several times."),
]
HeadersFromEnv = Annotated[
    list[str] | None,
    typer.Option(
        "--header-from-env",
        metavar="NAME=VARIABLE",
        help="The same, with the value of an environment variable. May be given several times.",
    ),
]
InitializeUrl = Annotated[
    str | None,
    typer.Option("--initialize-url", metavar="URL", help="The server POSTs to it before a node's first call."),
]
PreStopUrl = Annotated[
    str | None, typer.Option("--pre-stop-url", metavar="URL", help="The server GETs it to stop a running invocation.")
]
HookSeconds = Annotated[int | None, typer.Option("--hook-seconds", help="Time for each of these two, 1 to 90.")]
ConcurrencyMax = Annotated[int | None, typer.Option("--concurrency-max", help="How many calls run at the same time.")]
WaitingMax = Annotated[int | None, typer.Option("--waiting-max", help="How many calls wait for that on each node.")]
HostFile = Annotated[Path, typer.Argument(metavar="FILE", help="YAML that maps service/function to file.py:handler.")]
Listen = Annotated[
    str | None,
    typer.Option("--listen", metavar="HOST:PORT", help="Where to listen; overrides the file. Port 0: any free one."),
]
Advertise = Annotated[
    str | None,
    typer.Option(
        "--advertise", metavar="URL", help="URL under which the server reaches this program; overrides the file."
    ),
]
Secret = Annotated[
    str | None,
    typer.Option(
        "--secret", metavar="@FILE", help="File of the bearer token that callers must send. [env: FUNCTIONS_SECRET]"
    ),
]


SigningSecrets = Annotated[
    Path | None,
    typer.Option(
        "--signing-secrets",
        metavar="FILE",
        help="Refuse calls that are not signed with a secret of this file: the server's setting signing_secrets_file. "
        "[env: FUNCTIONS_SIGNING_SECRETS]",
    ),
]


NoRegister = Annotated[bool, typer.Option("--no-register", help="Host the functions without a server.")]


@functions.callback()
@takes_choices
def _functions() -> None:
    """Register functions, or host your own."""


@functions.command("list")
@remote
def list_functions(session: Session, limit: Limit = 1_000) -> None:
    """List the registered functions.

    \b
    Example:
      flowserver functions list
    """
    found = session.client.functions()
    columns = {
        "FUNCTION": lambda function: function.path,
        "TIMEOUT": lambda function: f"{function.timeout_seconds} s",
        "URL": lambda function: function.url,
    }
    show_list(session, found, columns, lambda function: function.path, "No function is registered.", limit)


@functions.command("put")
@remote
def put_function(
    session: Session,
    name: Name,
    url: Url,
    timeout_seconds: TimeoutSeconds = None,
    header: Headers = None,
    header_from_env: HeadersFromEnv = None,
    initialize_url: InitializeUrl = None,
    pre_stop_url: PreStopUrl = None,
    hook_seconds: HookSeconds = None,
    concurrency_max: ConcurrencyMax = None,
    waiting_max: WaitingMax = None,
) -> None:
    """Register a function at a URL.

    \b
    Examples:
      flowserver functions put shop/charge http://127.0.0.1:9000/charge
      flowserver functions put shop/charge http://127.0.0.1:9000/charge --timeout-seconds 30 --header 'X-Shop: main'
      flowserver functions put shop/charge http://127.0.0.1:9000/charge --header-from-env Authorization=CHARGE_TOKEN
      flowserver functions put shop/charge http://127.0.0.1:9000/charge --concurrency-max 4 --waiting-max 100
    """
    given = {
        "url": url,
        "headers": dict([*map(_header, header or ()), *map(_header_from_env, header_from_env or ())]),
        "timeoutSeconds": timeout_seconds,
        "initializeUrl": initialize_url,
        "preStopUrl": pre_stop_url,
        "hookSeconds": hook_seconds,
        "concurrencyMax": concurrency_max,
        "waitingMax": waiting_max,
    }
    body: Json = {name: value for name, value in given.items() if value is not None}
    registered = session.client.put_function(_checked(name), body)
    said = f"registered {name}" if "/" in name else f"registered {name}, a function without a service"
    show_one(session, registered, registered.path, said)
    for found in registered.warnings:
        session.note(f"warning[{found['id']}]: {found['message']}")


@functions.command("get")
@remote
def get_function(session: Session, name: Name) -> None:
    """Show a registration.

    \b
    Example:
      flowserver functions get shop/charge
    """
    found = session.client.get_function(session.about(_checked(name)))
    show_one(session, found, found.path, described(found))


@functions.command("delete")
@remote
def delete_function(session: Session, name: Name) -> None:
    """Remove the registration of a function.

    Steps that call it fail from now on.

    \b
    Example:
      flowserver functions delete shop/charge
    """
    session.client.delete_function(session.about(_checked(name)))
    show_change(session, "deleted", name)


@functions.command("serve")
@remote
def serve_functions(
    session: Session,
    file: HostFile,
    listen: Listen = None,
    advertise: Advertise = None,
    secret: Secret = None,
    signing_secrets: SigningSecrets = None,
    no_register: NoRegister = False,
) -> None:
    """Host Python functions and register them.

    It hosts the functions of the file that have a `handler`; `flowserver apply` registers those that have a `url`.

    For tutorials and development: handlers are called as the cloud's Python runtime calls them. To listen beyond
    loopback the program needs a secret. It registers the secret with the functions, and the server sends it with each
    call.

    An option or a variable that names the server overrides the file, and the file overrides the context in use.

    \b
    The file:
      server: http://127.0.0.1:8080
      functions:
        fnf-demo/StartJob: start_job.py:handler
        fnf-demo/GetJobStatus: {handler: get_job_status.py:handler, timeoutSeconds: 30}

    \b
    Example:
      flowserver functions serve functions.yaml
    """
    run, choices, server_in = map(load, _HOSTING)
    variable = os.environ.get(SIGNING_VARIABLE)
    signed_with = signing_secrets or (Path(variable) if variable else None)
    if no_register:
        run(file, choices(None, listen, advertise, None, _secret(secret), signing_secrets_file=signed_with))
        return
    chosen = session.at(server_in(file))
    run(file, choices(chosen.url, listen, advertise, chosen.token, _secret(secret), chosen.ca_file, signed_with))


def _secret(given: str | None) -> str | None:
    if given is None:
        return secret_of_variable(SECRET_VARIABLE)
    return secret_of_file(given, "--secret", SECRET_VARIABLE)


def _checked(name: str) -> str:
    parts = name.split("/") if "/" in name else [WITHOUT_SERVICE, name]
    if len(parts) != 2 or not all(parts):
        raise typer.BadParameter("a function is written service/function", param_hint="[SERVICE/]FUNCTION")
    return name


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise typer.BadParameter("a header is written 'Name: value'", param_hint="--header")
    if name.strip().lower() in SECRET_HEADERS and not is_only_references(value.strip()):
        hint = f"other users of this machine can read what is typed: use --header-from-env {name.strip()}=VARIABLE"
        raise typer.BadParameter(hint, param_hint="--header")
    return name.strip(), value.strip()


def _header_from_env(text: str) -> tuple[str, str]:
    name, equals, variable = text.partition("=")
    if not (name and equals and variable):
        raise typer.BadParameter("write it as Name=VARIABLE", param_hint="--header-from-env")
    if variable not in os.environ:
        raise CommandFailed(f"the variable {variable} is not set", ExitCode.USAGE)
    return name, os.environ[variable]
