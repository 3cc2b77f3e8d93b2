"""The table of attributes: the objects of a definition and the attributes that each may have.

Drives the reading of attributes, the hints for unknown ones and the reference page. Holds no rules that need more
than one attribute.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from flowserver.language.nodes import ListNode, MapNode, Node, ScalarNode


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


@dataclass(frozen=True, slots=True)
class Field:
    """One attribute; `default` and `doc` are for readers."""

    name: str
    shapes: tuple[Shape, ...]
    doc: str
    required: bool = False
    default: str = "none"


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """One kind of object; `title` is its name in messages."""

    title: str
    fields: MappingProxyType[str, Field]


def _required(name: str, shape: Shape, doc: str) -> Field:
    return Field(name, (shape,), doc, required=True)


def _kind(title: str, *fields: Field) -> ObjectKind:
    return ObjectKind(title, MappingProxyType({field.name: field for field in fields}))


_INPUT = Field(
    "inputMappings", (Shape.LIST,), "Builds the step's input.", default="the parent's input with its local over it"
)
_OUTPUT = Field("outputMappings", (Shape.LIST,), "Builds the step's output.", default="an empty object")
_LOCAL_OUTPUT = Field("outputMappings", (Shape.LIST,), "Builds the step's output.", default="the step's `$local`")
_END = Field("end", (Shape.BOOLEAN,), "Ends the list that contains the step, successfully.", default="false")
_STEPS = _required("steps", Shape.LIST, "Steps that run one after the other.")
_GOTO = Field("goto", (Shape.TEXT,), "The sibling step to go on with.", default="the next sibling")
_ERRORS = _required("errors", Shape.LIST, "Error names, matched exactly; `FnF.ALL` matches every one.")
_OPTION_STEPS = Field("steps", (Shape.LIST,), "Steps that run when the option is taken.")


def _step(title: str, *fields: Field, output: Field = _OUTPUT, end: bool = True) -> ObjectKind:
    shared = (
        _required("type", Shape.TEXT, "The kind of step."),
        _required("name", Shape.TEXT, "Unique in its list: letters, digits, `_`, `-`; at most 128."),
        *((_END,) if end else ()),
        _INPUT,
        output,
    )
    return _kind(title, *shared, *fields)


FLOW: Final = _kind(
    "a flow",
    _required("version", Shape.TEXT, "`v1`, or its synonym `v1beta1`."),
    _required("type", Shape.TEXT, "Always `flow`."),
    Field("name", (Shape.ANY,), "Ignored: the name is given when the flow is created."),
    _STEPS,
    Field("inputMappings", (Shape.LIST,), "Builds the flow's input.", default="the execution's input"),
    Field("outputMappings", (Shape.LIST,), "Builds the flow's output.", default="the flow's `$local`"),
    Field("timeoutSeconds", (Shape.WHOLE,), "Time for the whole execution, in seconds.", default="one year"),
)

_TASK = _step(
    "a task step",
    Field("resourceArn", (Shape.TEXT,), "The function, flow, queue or topic; this or `action`."),
    Field("action", (Shape.TEXT,), "The API to call, `{service}:{Api}`; this or `resourceArn`."),
    Field("pattern", (Shape.TEXT,), "When the task ends.", default="requestResponse"),
    Field("serviceParams", (Shape.MAP,), "Parameters of the call; `$` and `$.path` select from the step's input."),
    Field("timeoutSeconds", (Shape.WHOLE,), "Time for each attempt, in seconds.", default="the function's own"),
    Field("retry", (Shape.LIST,), "Policies for errors; the first that names the error is used.", default="no retry"),
    Field("catch", (Shape.LIST,), "Where to go on after an error; the first rule that names it is used."),
    Field("errorMappings", (Shape.LIST,), "Builds the output after a caught error.", default="an empty object"),
    output=_LOCAL_OUTPUT,
)

STEPS: Final = MappingProxyType(
    {
        "task": _TASK,
        "wait": _step(
            "a wait step",
            Field("duration", (Shape.WHOLE, Shape.TEXT), "Seconds, or a path to them; this or `timestamp`."),
            Field("timestamp", (Shape.TEXT,), "RFC 3339 instant, or a path to one; this or `duration`."),
        ),
        "pass": _step("a pass step"),
        "choice": _step(
            "a choice step",
            Field("choices", (Shape.LIST,), "Options; the first whose condition is true is taken."),
            Field("default", (Shape.MAP,), "The option for when no condition is true.", default="do nothing"),
            output=_LOCAL_OUTPUT,
        ),
        "parallel": _step("a parallel step", _required("branches", Shape.LIST, "Step lists that run at once.")),
        "foreach": _step(
            "a foreach step",
            _required("iterationMapping", Shape.MAP, "What to iterate over."),
            _STEPS,
        ),
        "succeed": _step("a succeed step", end=False),
        "fail": _step(
            "a fail step",
            Field("error", (Shape.TEXT,), "The error's name, a constant.", default="FnF.Failed"),
            Field("cause", (Shape.TEXT,), "The error's text, a constant.", default="an empty text"),
            end=False,
        ),
    }
)
"""The step kinds by their `type`."""

MAPPING: Final = _kind(
    "a mapping entry",
    _required("target", Shape.TEXT, "The key to set, taken literally."),
    _required("source", Shape.ANY, "A reference that begins with `$input`, `$local` or `$context`, or a constant."),
)
RETRY: Final = _kind(
    "a retry policy",
    _ERRORS,
    Field("intervalSeconds", (Shape.WHOLE,), "The first pause, in seconds.", default="1"),
    Field("maxIntervalSeconds", (Shape.WHOLE,), "The longest pause, in seconds.", default="86400"),
    Field("maxAttempts", (Shape.WHOLE,), "How many retries at most.", default="3"),
    Field("multiplier", (Shape.NUMBER,), "What each pause is multiplied by for the next.", default="2"),
)
CATCH: Final = _kind("a catch rule", _ERRORS, _required("goto", Shape.TEXT, "The sibling step to go on with."))
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
    _required("collection", Shape.TEXT, "A path to a list in the step's input."),
    _required("item", Shape.TEXT, "The key that gets the element."),
    Field("index", (Shape.TEXT,), "The key that gets the position, counted from 0."),
)

KINDS: Final = (FLOW, *STEPS.values(), MAPPING, RETRY, CATCH, OPTION, DEFAULT, BRANCH, ITERATION)
"""Every kind, in the order of the reference page."""
