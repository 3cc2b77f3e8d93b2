"""Reads the file that lists the functions to host. Loads no code and opens no port.

server: http://127.0.0.1:8080          # where to register the functions; this is the default
listen: 127.0.0.1:9100                 # optional
advertise: http://functions:9100       # optional: where the server reaches this program, if not where it listens
functions:
  fnf-demo/StartJob: start_job.py:handler
  fnf-demo/GetJobStatus: {handler: get_job_status.py:handler, timeoutSeconds: 30}
  media/transcode:
    handler: transcode.py:handler
    initializer: transcode.py:initialize   # these three are optional, and share hookSeconds
    preFreeze: transcode.py:flush
    preStop: transcode.py:clean_up
    hookSeconds: 10
    concurrencyMax: 2                      # registered with the server, like waitingMax
  shop/charge: {url: "http://…"}           # is left out: `flowserver apply` registers what runs elsewhere
"""

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from flowserver.base.names import is_name
from flowserver.base.yaml_files import YamlFileInvalid, read_yaml
from flowserver.client.results import WITHOUT_SERVICE
from flowserver.hosting.errors import HostingMissing, HostingMistake, HostingUnreachable

TIMEOUT_SECONDS_DEFAULT = 60

HOOK_SECONDS_DEFAULT = 3
HOOK_SECONDS_MAX = 90


def _check_function(key: str) -> str:
    service, slash, function = key.partition("/")
    if not slash or not (service == WITHOUT_SERVICE or is_name(service)) or not is_name(function):
        raise ValueError("a function is written service/function, or -/function if it has no service")
    return key


def _check_handler(text: str) -> str:
    file, _, name = text.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise ValueError("a handler is written file.py:name")
    return text


def _expand_short_form(value: object) -> object:
    return {"handler": value} if isinstance(value, str) else value


HandlerName = Annotated[str, AfterValidator(_check_handler)]


class FunctionEntry(BaseModel):
    """One function: its handlers as `file.py:name`, files relative to the list's own folder, and their time-outs."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel)

    handler: HandlerName
    timeout_seconds: int = Field(TIMEOUT_SECONDS_DEFAULT, ge=1, le=86_400)
    initializer: HandlerName | None = None
    pre_freeze: HandlerName | None = None
    pre_stop: HandlerName | None = None
    hook_seconds: int = Field(HOOK_SECONDS_DEFAULT, ge=1, le=HOOK_SECONDS_MAX)
    concurrency_max: int | None = Field(None, ge=1)
    waiting_max: int | None = Field(None, ge=0)


def _hosted(given: object) -> object:
    """The functions but those that have a `url`; raises ValueError if none is left."""
    if not isinstance(given, dict):
        return given
    hosted = {name: each for name, each in given.items() if not _is_elsewhere(each)}
    if given and not hosted:
        raise ValueError("no function has a handler; `flowserver apply` registers those that have a `url`")
    return hosted


def _is_elsewhere(function: object) -> bool:
    return isinstance(function, dict) and "url" in function and "handler" not in function


class HostFile(BaseModel):
    """The whole file; keys of `functions` are `service/function`. Those that have a `url` are left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    server: str | None = None
    listen: str = "127.0.0.1:9100"
    advertise: str | None = None
    functions: Annotated[
        dict[
            Annotated[str, AfterValidator(_check_function)],
            Annotated[FunctionEntry, BeforeValidator(_expand_short_form)],
        ],
        BeforeValidator(_hosted),
    ] = Field(min_length=1)


def read_host_file(path: Path) -> HostFile:
    """Read and check the file.

    Raises HostingMistake that names every mistake; HostingMissing or HostingUnreachable if there is nothing to read.
    """
    try:
        return HostFile.model_validate(read_yaml(path).content)
    except OSError as error:
        kind = HostingMissing if isinstance(error, FileNotFoundError) else HostingUnreachable
        raise kind(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        mistakes = "; ".join(map(_describe, error.errors()))
        raise HostingMistake(f"{path} is not valid: {mistakes}") from None
    except YamlFileInvalid as error:
        raise HostingMistake(str(error)) from None


def _describe(mistake: Any) -> str:
    *parents, last = [str(part) for part in mistake["loc"] if part != "[key]"] or [""]
    if mistake["type"] in ("extra_forbidden", "missing"):
        said = "is missing" if mistake["type"] == "missing" else f"is unknown{_hint(parents, last)}"
        return f"{' > '.join(parents)}: `{last}` {said}" if parents else f"`{last}` {said}"
    reason = mistake["msg"].removeprefix("Value error, ").replace("Input should", "must", 1)
    place = " > ".join([*parents, last])
    return f"{place}: {reason}" if place else reason


def _hint(parents: list[str], key: str) -> str:
    model: type[BaseModel] = FunctionEntry if parents else HostFile
    near = get_close_matches(key, [field.alias or name for name, field in model.model_fields.items()], n=1)
    return f"; did you mean `{near[0]}`?" if near else ""
