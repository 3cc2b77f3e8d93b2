"""The table of attributes: the objects of a definition and the attributes that each may have.

Drives the reading of attributes, the hints for unknown ones and the reference page. Holds no rules that need more
than one attribute.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Final, get_args

from flowserver.base.limits import Limits
from flowserver.base.names import NAME
from flowserver.language.graph import ChildLifecycle, Pattern
from flowserver.language.nodes import ListNode, MapNode, Node, ScalarNode
from flowserver.language.resources import ACTION_PATTERN, RESOURCE_PATTERN, START_EXECUTION

VERSIONS: Final = ("v1", "v1beta1")
"""The versions of the language; they are synonyms."""

_PATH: Final = r"^\$"

INSTANT_PATTERN: Final = "^[0-9]{4}.*[Tt]"
"""What every RFC 3339 instant begins with, as JSON Schema writes it."""

NAME_PATTERN: Final = f"^{NAME.pattern.removesuffix(chr(92) + 'Z')}$"


def _holds(*types: type) -> Callable[[Node], bool]:
    return lambda node: isinstance(node, ScalarNode) and type(node.value) in types


class Shape(Enum):
    """The type of a value; the enum's value is its name in messages."""

    TEXT = "a text"
    WHOLE = "a whole number"
    NUMBER = "a number"
    BOOLEAN = "true or false"
    LIST = "a list"
    MAP = "a mapping"
    ANY = "any value"

    def fits(self, node: Node) -> bool:
        """Whether the node has this shape."""
        return _FITS[self](node)


_FITS: Final[dict[Shape, Callable[[Node], bool]]] = {
    Shape.TEXT: _holds(str),
    Shape.WHOLE: _holds(int),
    Shape.NUMBER: _holds(int, float),
    Shape.BOOLEAN: _holds(bool),
    Shape.LIST: lambda node: isinstance(node, ListNode),
    Shape.MAP: lambda node: isinstance(node, MapNode),
    Shape.ANY: lambda _: True,
}
assert set(_FITS) == set(Shape)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the most that a value may be, both included: a number, the characters of a text, the entries of a
    list. `most` can be the name of a limit; None is any.
    """

    least: int = 0
    most: int | str | None = None

    def most_of(self, limits: Limits) -> int | None:
        """The most under these limits."""
        most = getattr(limits, self.most) if isinstance(self.most, str) else self.most
        assert most is None or isinstance(most, int)
        return most


ANY: Final = Bounds()
NOT_EMPTY: Final = Bounds(1)


@dataclass(frozen=True, slots=True)
class Field:
    """One attribute; `default` and `doc` are for readers."""

    name: str
    shapes: tuple[Shape, ...]
    doc: str
    required: bool = False
    default: str = "none"
    bounds: Bounds = ANY
    words: tuple[str, ...] = ()
    """The texts that it may be; empty if they cannot be listed."""
    pattern: str = ""
    """A regular expression that each text matches which it may be, in the dialect of JSON Schema."""
    example: str = ""
    """A value that it may be, for hints."""

    def takes(self, text: str) -> bool:
        """Whether it may be this text, as far as `words` and `pattern` say."""
        return text in self.words if self.words else re.search(self.pattern, text) is not None

    def title_of(self, shape: Shape) -> str:
        """The name of one of its shapes in messages."""
        return "a path" if shape is Shape.TEXT and self.pattern == _PATH else shape.value


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """One kind of object; `title` is its name in messages."""

    title: str
    fields: MappingProxyType[str, Field]
    exactly_one: tuple[str, ...] = ()
    """Two attributes, of which one must be given."""
    at_least_one: tuple[str, ...] = ()
    """Attributes of which one must be given, or more."""
    at_most_one: tuple[tuple[str, str], ...] = ()
    """Pairs of attributes that cannot be given together."""


def _required(name: str, shape: Shape, doc: str, bounds: Bounds = ANY) -> Field:
    return Field(name, (shape,), doc, required=True, bounds=bounds)


def _kind(title: str, *fields: Field) -> ObjectKind:
    return ObjectKind(title, MappingProxyType({field.name: field for field in fields}))


_INPUT = Field(
    "inputMappings", (Shape.LIST,), "Builds the step's input.", default="the parent's input with its local over it"
)
_OUTPUT = Field("outputMappings", (Shape.LIST,), "Builds the step's output.", default="an empty object")
_LOCAL_OUTPUT = Field("outputMappings", (Shape.LIST,), "Builds the step's output.", default="the step's `$local`")
_END = Field("end", (Shape.BOOLEAN,), "Ends the list that contains the step, successfully.", default="false")
_STEPS = _required("steps", Shape.LIST, "Steps that run one after the other.", NOT_EMPTY)
_GOTO = Field(
    "goto",
    (Shape.TEXT,),
    "The sibling step to go on with.",
    default="the next sibling",
    pattern=NAME_PATTERN,
    example="Charge",
)
_ERRORS = _required("errors", Shape.LIST, "Error names, matched exactly; `FnF.ALL` matches every one.", NOT_EMPTY)
_OPTION_STEPS = Field("steps", (Shape.LIST,), "Steps that run when the option is taken.")
_SECONDS = Bounds(1, "execution_seconds_max")
_PAUSE = Bounds(0, "retry_interval_seconds_max")


def _step(
    title: str,
    *fields: Field,
    output: Field = _OUTPUT,
    end: bool = True,
    exactly_one: tuple[str, ...] = (),
    at_least_one: tuple[str, ...] = (),
) -> ObjectKind:
    shared = (
        _required("type", Shape.TEXT, "The kind of step."),
        Field(
            "name",
            (Shape.TEXT,),
            "Unique in its list: letters, digits, `_`, `-`; at most 128.",
            required=True,
            pattern=NAME_PATTERN,
            example="Charge",
        ),
        *((_END,) if end else ()),
        _INPUT,
        output,
    )
    table = MappingProxyType({field.name: field for field in (*shared, *fields)})
    return ObjectKind(title, table, exactly_one, at_least_one)


FLOW: Final = _kind(
    "a flow",
    Field(
        "version", (Shape.TEXT,), "`v1`, or its synonym `v1beta1`.", required=True, words=VERSIONS, example=VERSIONS[0]
    ),
    Field("type", (Shape.TEXT,), "Always `flow`.", required=True, words=("flow",), example="flow"),
    Field("name", (Shape.ANY,), "Ignored: the name is given when the flow is created."),
    _STEPS,
    Field("inputMappings", (Shape.LIST,), "Builds the flow's input.", default="the execution's input"),
    Field("outputMappings", (Shape.LIST,), "Builds the flow's output.", default="the flow's `$local`"),
    Field(
        "timeoutSeconds",
        (Shape.WHOLE,),
        "Time for the whole execution, in seconds.",
        default="one year",
        bounds=_SECONDS,
    ),
)

_TASK = _step(
    "a task step",
    Field(
        "resourceArn",
        (Shape.TEXT,),
        "The function, flow, queue or topic; this or `action`.",
        pattern=RESOURCE_PATTERN,
        example="acs:fc:::functions/charge",
    ),
    Field(
        "action",
        (Shape.TEXT,),
        "The API to call, `{service}:{Api}`; this or `resourceArn`.",
        pattern=ACTION_PATTERN,
        example=START_EXECUTION,
    ),
    Field(
        "pattern",
        (Shape.TEXT,),
        "When the task ends.",
        default="requestResponse",
        words=tuple(map(str, Pattern)),
        example=Pattern.REQUEST_RESPONSE,
    ),
    Field("serviceParams", (Shape.MAP,), "Parameters of the call; `$` and `$.path` select from the step's input."),
    Field(
        "timeoutSeconds",
        (Shape.WHOLE,),
        "Time for each attempt, in seconds.",
        default="the function's own",
        bounds=_SECONDS,
    ),
    Field(
        "retry",
        (Shape.LIST,),
        "Policies for errors; the first that names the error is used.",
        default="no retry",
        bounds=NOT_EMPTY,
    ),
    Field("catch", (Shape.LIST,), "Where to go on after an error; the first rule that names it is used."),
    Field("errorMappings", (Shape.LIST,), "Builds the output after a caught error.", default="an empty object"),
    Field(
        "childLifecycle",
        (Shape.TEXT,),
        "Of a `sync` sub-flow: `owned` stops it when the step no longer waits for it, `independent` lets it run on.",
        default="the setting `child_lifecycle`",
        words=get_args(ChildLifecycle),
    ),
    output=_LOCAL_OUTPUT,
    exactly_one=("resourceArn", "action"),
)

STEPS: Final = MappingProxyType(
    {
        "task": _TASK,
        "wait": _step(
            "a wait step",
            Field(
                "duration",
                (Shape.WHOLE, Shape.TEXT),
                "Seconds, or a path to them; this or `timestamp`.",
                bounds=Bounds(0, "wait_seconds_max"),
                pattern=_PATH,
                example="1",
            ),
            Field(
                "timestamp",
                (Shape.TEXT,),
                "RFC 3339 instant, or a path to one; this or `duration`.",
                pattern=f"{_PATH}|{INSTANT_PATTERN}",
                example="2030-01-01T00:00:00Z",
            ),
            exactly_one=("duration", "timestamp"),
        ),
        "pass": _step("a pass step"),
        "choice": _step(
            "a choice step",
            Field("choices", (Shape.LIST,), "Options; the first whose condition is true is taken."),
            Field("default", (Shape.MAP,), "The option for when no condition is true.", default="do nothing"),
            output=_LOCAL_OUTPUT,
            at_least_one=("choices", "default"),
        ),
        "parallel": _step(
            "a parallel step",
            _required("branches", Shape.LIST, "Step lists that run at once.", Bounds(1, "branches_max")),
        ),
        "foreach": _step(
            "a foreach step",
            _required("iterationMapping", Shape.MAP, "What to iterate over."),
            _STEPS,
        ),
        "succeed": _step("a succeed step", end=False),
        "fail": _step(
            "a fail step",
            Field(
                "error",
                (Shape.TEXT,),
                "The error's name, a constant.",
                default="FnF.Failed",
                bounds=Bounds(1, "error_characters_max"),
            ),
            Field(
                "cause",
                (Shape.TEXT,),
                "The error's text, a constant.",
                default="an empty text",
                bounds=Bounds(0, "cause_characters_max"),
            ),
            end=False,
        ),
    }
)
"""The step kinds by their `type`."""

MAPPING: Final = _kind(
    "a mapping entry",
    _required("target", Shape.TEXT, "The key to set, taken literally.", NOT_EMPTY),
    _required("source", Shape.ANY, "A reference that begins with `$input`, `$local` or `$context`, or a constant."),
)
RETRY: Final = _kind(
    "a retry policy",
    _ERRORS,
    Field("intervalSeconds", (Shape.WHOLE,), "The first pause, in seconds.", default="1", bounds=_PAUSE),
    Field("maxIntervalSeconds", (Shape.WHOLE,), "The longest pause, in seconds.", default="86400", bounds=_PAUSE),
    Field(
        "maxAttempts", (Shape.WHOLE,), "How many retries at most.", default="3", bounds=Bounds(0, "retry_attempts_max")
    ),
    Field(
        "multiplier",
        (Shape.NUMBER,),
        "What each pause is multiplied by for the next.",
        default="2",
        bounds=Bounds(1, "retry_interval_seconds_max"),
    ),
)
CATCH: Final = _kind("a catch rule", _ERRORS, replace(_GOTO, required=True, default="none"))
OPTION: Final = _kind(
    "a choice option",
    Field("condition", (Shape.TEXT, Shape.BOOLEAN), "An expression over the step's input.", required=True),
    _OPTION_STEPS,
    _GOTO,
)
DEFAULT: Final = _kind("a default option", _OPTION_STEPS, _GOTO)
BRANCH: Final = _kind("a branch", _STEPS)
ITERATION: Final = _kind(
    "an iterationMapping",
    Field(
        "collection",
        (Shape.TEXT,),
        "A path to a list in the step's input.",
        required=True,
        pattern=_PATH,
        example="$.items",
    ),
    _required("item", Shape.TEXT, "The key that gets the element.", NOT_EMPTY),
    Field("index", (Shape.TEXT,), "The key that gets the position, counted from 0.", bounds=NOT_EMPTY),
)

STEP: Final = "step"
"""What a list of steps holds: an object of one of the step kinds, by its `type`."""

OBJECTS: Final = MappingProxyType(
    {
        "flow": FLOW,
        "mapping": MAPPING,
        "retryPolicy": RETRY,
        "catchRule": CATCH,
        "option": OPTION,
        "defaultOption": DEFAULT,
        "branch": BRANCH,
        "iterationMapping": ITERATION,
    }
)
"""The kinds that are no steps, by the names that programs use."""

HOLDS: Final = MappingProxyType(
    {
        "steps": STEP,
        "inputMappings": "mapping",
        "outputMappings": "mapping",
        "errorMappings": "mapping",
        "retry": "retryPolicy",
        "catch": "catchRule",
        "choices": "option",
        "default": "defaultOption",
        "branches": "branch",
        "iterationMapping": "iterationMapping",
    }
)
"""What kind of object an attribute holds, or each entry of its list."""

KINDS: Final = (FLOW, *STEPS.values(), MAPPING, RETRY, CATCH, OPTION, DEFAULT, BRANCH, ITERATION)
"""Every kind, in the order of the reference page."""
