"""What to write instead of a command that has too many words or lacks one. Loaded when there is one."""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

_JSON: Final = re.compile(r"\s*[{\[]|@|-$")
_DURATION: Final = re.compile(r"\d+[smhdw]")


def _text(option: str) -> Callable[[str], str]:
    return lambda _: option


_STATUSES: Final = ("running", "succeeded", "failed", "stopped", "timedout")

_OPTIONS: Final[dict[str, tuple[Callable[[str], str], ...]]] = {
    "start": (
        lambda text: "--input" if _JSON.match(text) else "--name",
        lambda text: "--input" if _JSON.match(text) else "--name",
    ),
    "tasks succeed": (_text("--output"),),
    "tasks fail": (_text("--error"), _text("--cause")),
    "schedules create": (lambda text: "--every" if _DURATION.match(text) else "--cron", _text("--timezone")),
    "schedules update": (lambda text: "--every" if _DURATION.match(text) else "--cron", _text("--timezone")),
    "schedules pause": (_text("--note"),),
    "schedules resume": (_text("--note"),),
    "schedules trigger": (_text("--overlap"),),
    "schedules backfill": (_text("--from"), _text("--to")),
    "executions list": (lambda text: "--status" if text.lower() in _STATUSES else "--flow",),
    "executions history": (_text("--step"),),
    "versions publish": (_text("--description"),),
    "aliases create": (_text("--route"), _text("--route")),
    "aliases update": (_text("--route"), _text("--route")),
    "context set": (_text("--server"),),
    "topics publish": (_text("--tag"),),
}
"""By command: the option that each word after its arguments probably belongs to."""

_OTHER_OPTIONS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "apply": {"-f": (), "--filename": (), "--file": (), "-R": (), "--recursive": ()},
    "validate": {"-f": (), "--filename": (), "--file": (), "-R": (), "--recursive": ()},
    "start": {
        **dict.fromkeys(("-d", "--data", "--payload"), ("--input",)),
        **dict.fromkeys(("--alias", "--version"), ("--qualifier",)),
    },
    "executions list": {f"--{each}": ("--status", each) for each in _STATUSES},
    "executions redrive": {f"--{each}": ("--status", each) for each in ("failed", "stopped", "timedout")},
}
"""By command: options of other programs, each with what is written in its place."""

_IN_TWO_PARTS: Final = ("EXECUTION", "SCHEDULE", "[SERVICE/]FUNCTION")
"""Arguments that are written with a slash."""


def explain(error: Any, command: Any, given: Sequence[str]) -> None:
    """Add to the error of a command, which could not parse the given words, how it is written.

    Only if it has too many words or lacks one, or an option of another program; of other errors the message says what
    is wrong.
    """
    if option := getattr(error, "option_name", None):
        _explain_option(error, option, list(given))
        return
    is_missing = getattr(error, "param", None) is not None and not error.message
    if not is_missing and not error.message.startswith("Got unexpected extra argument"):
        return
    help_text = f"Example: {example}" if (example := next(_examples(command), None)) else ""
    meant = _meant(error.ctx, command, list(given))
    error.message = ". ".join(part for part in (error.message, f"Write: {meant}" if meant else help_text) if part)


def _explain_option(error: Any, option: str, words: list[str]) -> None:
    """Add to the error of an option that there is not how it is written, if that is known."""
    _, _, path = error.ctx.command_path.partition(" ")
    meant = _OTHER_OPTIONS.get(path, {}).get(option)
    place = next((number for number, word in enumerate(words) if word.partition("=")[0] == option), None)
    if meant is None or place is None:
        return
    _, equals, value = words[place].partition("=")
    words[place : place + 1] = [*meant, value] if equals else meant
    error.possibilities = None
    error.message += f". Write: {error.ctx.command_path} {shlex.join(words)}"


def _examples(command: Any) -> Iterator[str]:
    lines = (line.strip() for line in (command.help or "").splitlines())
    return (line for line in lines if line.startswith("flowserver "))


def _meant(context: Any, command: Any, words: list[str]) -> str | None:
    """The command that was probably meant; None if that is not known."""
    values, extras, _ = command.make_parser(context).parse_args(list(words))
    if not extras:
        return None
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    named = [values.get(each.name) for each in arguments]
    if not all(isinstance(each, str) for each in named):
        return None
    names = {name for each in command.params for name in each.opts}
    places = _places(words, [*named, *extras])
    if arguments and arguments[0].metavar in _IN_TWO_PARTS and "/" not in named[0]:
        words[places[0]] = f"{words[places[0]]}/{words[places[1]]}"
        del words[places[1]]
        places = [places[0], *(each - 1 for each in places[2:])]
    _, _, path = context.command_path.partition(" ")
    further = [words[each] for each in places[len(arguments) :]]
    for place in reversed(places[len(arguments) :]):
        del words[place]
    options = _options(path, names, further, has_arguments=bool(arguments))
    if options is None or any(option in words for option in options[::2]):
        return None
    return f"{context.command_path} {shlex.join([*words, *options])}"


def _places(words: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where the wanted words are, which are in this order."""
    places: list[int] = []
    for each in wanted:
        places.append(words.index(each, places[-1] + 1 if places else 0))
    return places


def _options(path: str, names: set[str], further: Sequence[str], *, has_arguments: bool) -> list[str] | None:
    """The options that the further words probably belong to, with them; None if that is not known."""
    filters = [name for name in ("--flow", "--prefix") if name in names and not has_arguments]
    chosen = _OPTIONS.get(path) or tuple(map(_text, filters[:1]))
    if len(further) > len(chosen):
        return None
    return [part for option, word in zip(chosen, further, strict=False) for part in (option(word), word)]
