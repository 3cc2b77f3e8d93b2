"""Named servers in the user's configuration folder: `contexts.json`, which only the user can read."""

import json
import os
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from flowserver.base.lazy_import import load
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed

FILE: Final = "contexts.json"
PRIVATE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700

_DID_YOU_MEAN: Final = "flowserver.cli.remote.suggestions:did_you_mean"
"""Loaded when it is needed."""


class Place(Struct, frozen=True):
    """A server, and how to be let in."""

    server: str | None = None
    token: str | None = None
    ca_file: str | None = None


class Contexts(Struct, frozen=True):
    """All named servers, and the name of the one in use."""

    places: dict[str, Place]
    current: str | None = None


def chosen_place(name: str | None) -> Place:
    """The context of this name, or the one in use; an empty place if there is none in use. Raises CommandFailed."""
    contexts = read_contexts()
    wanted = name or contexts.current
    if wanted is None:
        return Place()
    require_context(contexts, wanted)
    return contexts.places[wanted]


def require_context(contexts: Contexts, name: str) -> None:
    """Raises CommandFailed, with the name that was probably meant, if there is no such context."""
    if name not in contexts.places:
        hint = load(_DID_YOU_MEAN)(name, contexts.places) or ": flowserver context list"
        raise CommandFailed(f"there is no context {name}{hint}", ExitCode.NOT_FOUND)


def configuration_file() -> Path:
    """Where the contexts are: `flowserver/contexts.json` in XDG_CONFIG_HOME, or in ~/.config."""
    folder = os.environ.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "flowserver" / FILE


def read_contexts() -> Contexts:
    """The contexts; none if there is no file. Raises CommandFailed if it cannot be understood."""
    file = configuration_file()
    try:
        stored = json.loads(file.read_text("utf-8-sig"))
        places = {str(name): Place(**place) for name, place in stored["contexts"].items()}
        return Contexts(places, stored["current"])
    except FileNotFoundError:
        return Contexts({})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise CommandFailed(f"{file} does not hold contexts; delete it", ExitCode.USAGE) from None


def write_contexts(contexts: Contexts) -> None:
    """Replace the file, so that a crash leaves the old one or the new one; its mode is 0600 from the start."""
    file = configuration_file()
    file.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    stored = {
        "current": contexts.current,
        "contexts": {name: asdict(place) for name, place in sorted(contexts.places.items())},
    }
    fresh = file.with_name(f"{FILE}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as writer:
        json.dump(stored, writer, indent=2)
    fresh.replace(file)
