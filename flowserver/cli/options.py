"""Options that several commands have, and the flags of `serve`: one for every field of the settings."""

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import typer
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from flowserver.base.yaml_files import read_yaml
from flowserver.cli.environment_variables import OF_COMMANDS, PREFIX
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.settings import Settings, SettingsFileInvalid

FLAGGED: Final = tuple(name for name in Settings.model_fields if name != "secrets_key")
"""The settings that are flags, too: other users of the machine can read what is typed."""


def flag_of(name: str) -> str:
    """The flag of a setting: `--database-url`."""
    return "--" + name.replace("_", "-")


def variable_of(name: str) -> str:
    """The environment variable of a setting: `FLOWSERVER_DATABASE_URL`."""
    return f"{PREFIX}{name}".upper()


def read_language_settings(flags: Mapping[str, Any]) -> Settings:
    """`read_settings` for commands that only read definitions.

    They need no keys of secrets, so they do not open the file with the keys: its path may be relative to the folder of
    the server.
    """
    return _read(flags, secrets_key_file=None)  # wins over the environment and the settings file


def read_settings(flags: Mapping[str, Any]) -> Settings:
    """Settings from the flags that were given (None and empty lists were not), the environment, the settings file
    and the defaults.

    Raises typer.BadParameter, which names every flag, variable and line of the file that is wrong, and what is
    allowed there; OSError if there is no such file.
    """
    return _read(flags)


def _read(flags: Mapping[str, Any], **fixed: None) -> Settings:
    given = {name: value for name, value in flags.items() if value not in (None, [], ())}
    try:
        return Settings(**given, **fixed)
    except ValidationError as error:
        (origin, reason), *others = [mistake for each in error.errors() for mistake in _mistakes(each, given)]
    further = [f"Invalid value for {where}: {why}" for where, why in others]
    raise typer.BadParameter("\n".join([reason, *further]), param_hint=origin)


def _mistakes(error: ErrorDetails, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Where each mistake is that pydantic reports as this one error, and what is allowed there."""
    where = _source(error["loc"], given)
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, SettingsFileInvalid):
        yield from ((where, mistake) for mistake in cause.mistakes)
    else:
        reason = error["msg"].removeprefix("Value error, ").replace("Input should", "must", 1)
        yield where, _allowed(str(error["loc"][0])) or reason


def _allowed(name: str) -> str | None:
    """What a setting that is a number, or true or false, must be; None for other settings."""
    bounds = Settings.model_json_schema()["properties"][name]
    if _is_yes_or_no(name):
        return "must be true or false"
    kind = {"integer": "an integer", "number": "a number"}.get(bounds.get("type"))
    if kind is None:
        return None
    if "maximum" in bounds:
        return f"must be {kind} from {bounds['minimum']} to {bounds['maximum']}"
    return f"must be {kind} of {bounds['minimum']} or more"


def _source(place: tuple[int | str, ...], given: Mapping[str, Any]) -> str:
    """Where the value at a place in the settings was given."""
    name = str(place[0])
    file = given.get("settings") or os.environ.get(variable_of("settings"))
    if name in given or name == "settings" or variable_of(name) in os.environ or file is None:
        return _origin(name, given)
    return f"{name} in {file}, line {read_yaml(Path(file)).line_of(place)}"


def _origin(name: str, given: Mapping[str, Any]) -> str:
    return flag_of(name) if name in given else variable_of(name)


def require_known_variables(names: Iterable[str]) -> None:
    """Raises CommandFailed for variables among these that no command reads: a misspelt one would be ignored.

    It then names the other mistakes in the environment, too.
    """
    unknown = list(_unknown_variables(names))
    if not unknown:
        return
    try:
        read_settings({})
    except typer.BadParameter as error:
        unknown += error.format_message().splitlines()
    except OSError as error:
        unknown.append(f"{error.filename}: {error.strerror}")
    raise CommandFailed("\nflowserver: ".join(unknown), ExitCode.USAGE)


def _unknown_variables(names: Iterable[str]) -> Iterator[str]:
    known = {*map(variable_of, Settings.model_fields), *OF_COMMANDS}
    for name in sorted(names):
        if name.upper() not in known:
            near = get_close_matches(name.upper()[len(PREFIX) :], [each[len(PREFIX) :] for each in sorted(known)], n=1)
            hint = f"; did you mean {PREFIX}{near[0]}?" if near else ""
            yield f"{name} is no setting of flowserver; unset it{hint}"


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Turn `command(settings, *, …)` into a command that has a flag for every setting in place of `settings`."""
    own = list(inspect.signature(command).parameters.values())[1:]

    @wraps(command)
    def with_flags(**values: Any) -> None:
        settings = read_settings({name: values.pop(name) for name in FLAGGED})
        command(settings, **values)

    flags = [_parameter(name) for name in FLAGGED]
    with_flags.__signature__ = inspect.Signature([*flags, *own])  # type: ignore[attr-defined]
    return with_flags


def _parameter(name: str) -> inspect.Parameter:
    kind: Any = list[str] if _is_of_pairs(name) else Settings.model_fields[name].annotation
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, _option(name)]
    )


def _option(name: str) -> Any:
    field = Settings.model_fields[name]
    default = field.get_default(call_default_factory=True)
    notes, metavar = f"env: {variable_of(name)}", None
    if _is_of_pairs(name):
        notes, metavar = f"{notes}, separated by blanks", "<name=url>"
    elif isinstance(default, list):
        notes, metavar = f"{notes}, separated by commas", "<str>"
    elif default is not None:
        notes += f"; default: {str(default).lower() if isinstance(default, bool) else default}"
    repeated = " May be given several times." if metavar else ""
    flag = f"{flag_of(name)}/--no-{flag_of(name)[2:]}" if _is_yes_or_no(name) else flag_of(name)
    return typer.Option(flag, help=f"{field.description}{repeated} [{notes}]", metavar=metavar, case_sensitive=False)


def _is_yes_or_no(name: str) -> bool:
    return bool in (Settings.model_fields[name].annotation, *get_args(Settings.model_fields[name].annotation))


def _is_of_pairs(name: str) -> bool:
    return isinstance(Settings.model_fields[name].get_default(call_default_factory=True), dict)


DatabaseUrl = Annotated[str | None, _option("database_url")]

SecretsKeyFile = Annotated[Path | None, _option("secrets_key_file")]

LenientFlag = Annotated[bool | None, _option("lenient")]

LimitsFlag = Annotated[Literal["default", "cloud"] | None, _option("limits")]

MissingSourceFlag = Annotated[Literal["null", "fail"] | None, _option("missing_source")]
