"""The commands `flowserver functions …`: the registry of a running server, and hosting functions for it."""

from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from flowserver.base.json_values import JsonObject, dump_json
from flowserver.base.urls import SERVER_DEFAULT
from flowserver.cli.options import OutputFormat, ServerUrl, Token
from flowserver.cli.rest_client import RestClient
from flowserver.cli.tables import aligned
from flowserver.hosting.serving import Choices, run
from flowserver.operations.function_names import WITHOUT_SERVICE

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
InitializeUrl = Annotated[
    str | None, typer.Option("--initialize-url", metavar="URL", help="POSTed to before a node's first call.")
]
PreStopUrl = Annotated[
    str | None, typer.Option("--pre-stop-url", metavar="URL", help="Asked when a running invocation is stopped.")
]
HookSeconds = Annotated[int | None, typer.Option("--hook-seconds", help="Time for each of these two, 1 to 90.")]
ConcurrencyMax = Annotated[int | None, typer.Option("--concurrency-max", help="Calls made at once.")]
WaitingMax = Annotated[int | None, typer.Option("--waiting-max", help="Calls that wait for one of these on each node.")]
HostFile = Annotated[Path, typer.Argument(metavar="FILE", help="YAML that maps service/function to file.py:handler.")]
Listen = Annotated[
    str | None, typer.Option("--listen", metavar="HOST:PORT", help="Where to host; wins over the file. Port 0: any.")
]
Advertise = Annotated[
    str | None,
    typer.Option("--advertise", metavar="URL", help="Where the server reaches this program; wins over the file."),
]
Secret = Annotated[
    str | None,
    typer.Option(
        "--secret", envvar="FUNCTIONS_SECRET", show_envvar=True, help="What callers must send as their bearer token."
    ),
]
RegisterWith = Annotated[
    str | None,
    typer.Option(
        "--server",
        envvar="FLOWSERVER_URL",
        show_envvar=True,
        show_default=SERVER_DEFAULT,
        help="Server to register with; wins over the file.",
    ),
]
NoRegister = Annotated[bool, typer.Option("--no-register", help="Host the functions without a server.")]


@functions.callback()
def _functions() -> None:
    """Register functions, or host your own."""


@functions.command("list")
def list_functions(
    server: ServerUrl = SERVER_DEFAULT, token: Token = None, output_format: OutputFormat = "text"
) -> None:
    """List the registered functions.

    \b
    Example:
      flowserver functions list
    """
    with RestClient(server, token) as client:
        found = [each for page in client.pages("/v1/functions") for each in page.get("functions", ())]
    if output_format == "json":
        typer.echo(dump_json(found))
    elif found:
        typer.echo(aligned([["FUNCTION", "TIMEOUT", "URL"], *map(_row, found)]))
    else:
        typer.echo("No function is registered.", err=True)


@functions.command()
def put(
    name: Name,
    url: Url,
    timeout_seconds: TimeoutSeconds = None,
    header: Headers = None,
    initialize_url: InitializeUrl = None,
    pre_stop_url: PreStopUrl = None,
    hook_seconds: HookSeconds = None,
    concurrency_max: ConcurrencyMax = None,
    waiting_max: WaitingMax = None,
    server: ServerUrl = SERVER_DEFAULT,
    token: Token = None,
) -> None:
    """Register a function at a URL.

    \b
    Examples:
      flowserver functions put shop/charge http://127.0.0.1:9000/charge
      flowserver functions put shop/charge http://127.0.0.1:9000/charge --timeout-seconds 30 --header 'X-Shop: main'
      flowserver functions put shop/charge http://127.0.0.1:9000/charge --concurrency-max 4 --waiting-max 100
    """
    given = {
        "url": url,
        "headers": dict(map(_header, header or ())),
        "timeoutSeconds": timeout_seconds,
        "initializeUrl": initialize_url,
        "preStopUrl": pre_stop_url,
        "hookSeconds": hook_seconds,
        "concurrencyMax": concurrency_max,
        "waitingMax": waiting_max,
    }
    body: JsonObject = {name: value for name, value in given.items() if value is not None}
    with RestClient(server, token) as client:
        client.call("PUT", _path(name), body)
    typer.echo(f"registered {name}" if "/" in name else f"registered {name}, a function without a service")


@functions.command()
def get(name: Name, server: ServerUrl = SERVER_DEFAULT, token: Token = None) -> None:
    """Show a registration as JSON.

    \b
    Example:
      flowserver functions get shop/charge
    """
    with RestClient(server, token) as client:
        typer.echo(dump_json(client.call("GET", _path(name))))


@functions.command()
def delete(name: Name, server: ServerUrl = SERVER_DEFAULT, token: Token = None) -> None:
    """Take a function out of the registry.

    Steps that call it fail from now on.

    \b
    Example:
      flowserver functions delete shop/charge
    """
    with RestClient(server, token) as client:
        client.call("DELETE", _path(name))
    typer.echo(f"deleted {name}")


@functions.command()
def serve(
    file: HostFile,
    server: RegisterWith = None,
    listen: Listen = None,
    advertise: Advertise = None,
    secret: Secret = None,
    token: Token = None,
    no_register: NoRegister = False,
) -> None:
    """Host Python functions and register them.

    For tutorials and development: handlers are called as the cloud's Python runtime calls them. Beyond loopback it
    needs a secret, which is registered with the functions, so that the server sends it with each call.

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
    run(file, Choices(server, listen, advertise, token, secret, not no_register))


def _path(name: str) -> str:
    parts = name.split("/") if "/" in name else [WITHOUT_SERVICE, name]
    if len(parts) != 2 or not all(parts):
        raise typer.BadParameter("a function is written service/function", param_hint="[SERVICE/]FUNCTION")
    return "/v1/functions/" + "/".join(quote(part, safe="") for part in parts)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise typer.BadParameter("a header is written 'Name: value'", param_hint="--header")
    return name.strip(), value.strip()


def _row(function: JsonObject) -> list[str]:
    prefix = "" if function["service"] == WITHOUT_SERVICE else f"{function['service']}/"
    return [prefix + function["function"], f"{function['timeoutSeconds']} s", function["url"]]
