"""The table of attributes of flow test files. The reference page is made from it."""

from types import MappingProxyType
from typing import Final

from flowserver.base.durations import DURATION
from flowserver.flowtests.cases import Crash
from flowserver.flowtests.real_calls import CALLEE_PATTERN, is_callee
from flowserver.language.fields import INSTANT_PATTERN, NOT_EMPTY, Bounds, Field, ObjectKind, Shape
from flowserver.machine.state import Status

ANY_STATUS: Final = "Any"
STATUSES: Final = (*(str(each) for each in Status if each not in (Status.RUNNING, Status.STOPPED)), ANY_STATUS)
"""What an execution can be expected to end with."""

TIMES_MAX: Final = 1_000_000
OPERATORS: Final = "(<=|>=|<|>|=)?"
"""What a bound of a duration begins with."""


def _kind(
    title: str,
    *fields: Field,
    at_least_one: tuple[str, ...] = (),
    at_most_one: tuple[tuple[str, str], ...] = (),
) -> ObjectKind:
    by_name = MappingProxyType({field.name: field for field in fields})
    return ObjectKind(title, by_name, at_least_one=at_least_one, at_most_one=at_most_one)


_MOCKS: Final = (
    Field("functions", (Shape.MAP,), "Replies by the name of a function, `pay/charge` or `charge`, or of an action."),
    Field("flows", (Shape.MAP,), "Replies by the name of a sub-flow, or `real` with the file of its definition."),
    Field("queues", (Shape.MAP,), "Replies by the name of a queue that steps send to."),
    Field("topics", (Shape.MAP,), "Replies by the name of a topic that steps publish to."),
    Field("steps", (Shape.MAP,), "Replies by the name or the path of a step, for any kind of call."),
    Field("callbacks", (Shape.MAP,), "Reports by the name or the path of a `waitForCallback` step."),
)

_STARTED_AT: Final = Field(
    "startedAt",
    (Shape.TEXT,),
    "RFC 3339 instant at which executions begin.",
    default="2026-01-01T00:00:00Z",
    pattern=INSTANT_PATTERN,
    example="2026-01-01T00:00:00Z",
)

FILE: Final = _kind(
    "a flow test file",
    Field("flow", (Shape.TEXT,), "File of the definition, from this file's folder.", required=True),
    Field(
        "name",
        (Shape.TEXT,),
        "Name of the flow, as `$context.flow.name` gives it.",
        default="the file's, without its ending",
        bounds=NOT_EMPTY,
    ),
    Field("input", (Shape.MAP,), "Input of tests without one.", default="an empty object"),
    _STARTED_AT,
    *_MOCKS,
    Field("tests", (Shape.LIST,), "The tests.", bounds=Bounds(1, "flow_tests_max")),
    Field("sim", (Shape.MAP,), "How `flowserver sim` simulates the flow."),
    at_least_one=("tests", "sim"),
)

TEST: Final = _kind(
    "a test",
    Field("name", (Shape.TEXT,), "What it shows; unique in the file.", required=True, bounds=Bounds(1, 200)),
    Field("input", (Shape.MAP,), "Input of the execution.", default="the file's"),
    Field(
        "executionName",
        (Shape.TEXT,),
        "Name of the execution, as `$context.execution.name` gives it.",
        default="`test`",
        bounds=Bounds(1, 128),
    ),
    _STARTED_AT,
    *_MOCKS,
    Field("expect", (Shape.MAP,), "What has to be the result.", default="the execution succeeds"),
)

_TIMING: Final = (
    Field(
        "after",
        (Shape.TEXT,),
        "Time until the answer comes: `250ms`, `3s`, `1h30m`, `2d`.",
        default="at once",
        pattern=f"^{DURATION}$",
        example="3s",
    ),
    Field("times", (Shape.WHOLE,), "How many calls get this answer.", default="1", bounds=Bounds(1, TIMES_MAX)),
    Field("always", (Shape.BOOLEAN,), "All further calls get this answer.", default="false"),
    Field("never", (Shape.BOOLEAN,), "No answer comes; time-outs end the wait.", default="false"),
)

REPLY: Final = _kind(
    "a reply",
    Field("return", (Shape.ANY,), "What the call returns.", default="an empty object, or what the service answers"),
    Field("error", (Shape.TEXT,), "The error that the call fails with.", bounds=NOT_EMPTY),
    Field("cause", (Shape.TEXT,), "The error's text.", default="an empty text"),
    *_TIMING,
    Field(
        "crash",
        (Shape.TEXT,),
        "The node crashes: `before` it makes the call, or `after` the call, before its result is committed. The call "
        "is made again, with the same idempotency key and the next reply.",
        words=tuple(map(str, Crash)),
    ),
)

REAL: Final = _kind(
    "a sub-flow that runs",
    Field("real", (Shape.TEXT,), "File of its definition, from this file's folder.", required=True),
)

REAL_CALL: Final = _kind(
    "a real call",
    Field(
        "real",
        (Shape.TEXT,),
        "A URL, or a Python handler as `file.py:function`.",
        required=True,
        pattern=CALLEE_PATTERN,
    ),
    _TIMING[0],
)

REPORT: Final = _kind(
    "a report",
    Field("succeed", (Shape.MAP,), "The output that the task succeeds with."),
    Field("fail", (Shape.TEXT,), "The error that the task fails with.", bounds=NOT_EMPTY),
    Field("cause", (Shape.TEXT,), "The error's text.", default="an empty text"),
    *_TIMING,
    Field(
        "again",
        (Shape.TEXT,),
        "Time from the report until the same report comes once more.",
        default="it comes once",
        pattern=f"^{DURATION}$",
        example="3s",
    ),
)

PROPERTIES_MAX: Final = 100
_LISTED: Final = Bounds(1, PROPERTIES_MAX)
_PROPERTIES: Final = (
    Field("never", (Shape.LIST,), "Steps that are not entered."),
    Field(
        "atMostOnce",
        (Shape.LIST,),
        "Steps or resources that run at most once. Calls that are repeated under an idempotency key count once.",
        bounds=_LISTED,
    ),
    Field(
        "compensated",
        (Shape.MAP,),
        "Steps, each with the step that undoes its work: it runs if and only if that is needed.",
    ),
    Field("always", (Shape.LIST,), "Conditions that are true of the run.", bounds=_LISTED),
    Field("outputSchema", (Shape.MAP,), "A JSON Schema that the output fits if the execution succeeds."),
)

UNDO: Final = _kind(
    "an undoing step",
    Field("by", (Shape.TEXT,), "The step that undoes the work.", required=True),
    Field("when", (Shape.TEXT,), "When it is needed.", default='`$.status != "Succeeded"`'),
    Field("mayFail", (Shape.BOOLEAN,), "Whether it is enough that the step runs.", default="false"),
)

CLAIM: Final = _kind(
    "a condition of a run",
    Field("then", (Shape.TEXT,), "What is true.", required=True),
    Field("if", (Shape.TEXT,), "Of which runs.", default="of all runs"),
)

SEED_MAX: Final = 2**53 - 1
SIMULATION: Final = _kind(
    "a simulation",
    Field(
        "runs",
        (Shape.WHOLE,),
        "How many runs are made.",
        default="until further ones show nothing new, at most 1000",
        bounds=Bounds(1, "simulation_runs_max"),
    ),
    Field(
        "inputSchema",
        (Shape.MAP,),
        "A JSON Schema that drawn inputs fit.",
        default="inputs of the file, or what the flow reads",
    ),
    Field("seed", (Shape.WHOLE,), "What the runs are drawn from.", default="1", bounds=Bounds(0, SEED_MAX)),
    Field("faults", (Shape.LIST,), "The faults that can happen.", default="all", bounds=NOT_EMPTY),
    Field(
        "collections",
        (Shape.LIST,),
        "Sizes of lists in made-up data.",
        default="2, and what the faults say",
        bounds=NOT_EMPTY,
    ),
    Field("ignore", (Shape.LIST,), "Properties of every flow that are not checked."),
    *_PROPERTIES,
)

EXPECT: Final = _kind(
    "an expectation",
    Field(
        "status",
        (Shape.TEXT,),
        "`Succeeded`, `Failed`, `TimedOut`, or `Any` of them.",
        default="`Succeeded`, unless `error` is given",
        words=STATUSES,
    ),
    Field("output", (Shape.MAP,), "The output, with no other members."),
    Field("outputIncludes", (Shape.MAP,), "Members that the output has, at any depth; it may have others."),
    Field("error", (Shape.TEXT,), "The name of the error that the execution ends with."),
    Field("cause", (Shape.TEXT,), "The error's text."),
    Field("causeIncludes", (Shape.TEXT,), "A part of the error's text."),
    Field("path", (Shape.LIST,), "Paths of all steps in the order in which they are entered."),
    Field("pathIncludes", (Shape.LIST,), "Paths of steps that are entered in this order, with others between them."),
    Field("calls", (Shape.MAP,), "By step or resource the number of calls, the list of their inputs, or both."),
    Field(
        "took",
        (Shape.TEXT, Shape.LIST),
        "Bounds of the virtual time: `< 3d`, or `[> 1h, < 3d]`.",
        pattern=rf"^\s*{OPERATORS}\s*{DURATION}\s*$",
        example="< 1m",
    ),
    *_PROPERTIES,
    at_most_one=(("output", "outputIncludes"), ("path", "pathIncludes"), ("cause", "causeIncludes")),
)

CALLS: Final = _kind(
    "expected calls",
    Field("count", (Shape.WHOLE,), "How many calls are made, with those of retries.", bounds=Bounds(0, TIMES_MAX)),
    Field("inputs", (Shape.LIST,), "The input of each call, with no other members."),
    Field("inputsInclude", (Shape.LIST,), "Members that the input of each call has; it may have others."),
    at_most_one=(("inputs", "inputsInclude"),),
)

OBJECTS: Final = MappingProxyType(
    {
        "file": FILE,
        "test": TEST,
        "reply": REPLY,
        "subFlow": REAL,
        "realCall": REAL_CALL,
        "report": REPORT,
        "expectation": EXPECT,
        "calls": CALLS,
        "undo": UNDO,
        "claim": CLAIM,
        "simulation": SIMULATION,
    }
)
"""The kinds by the names that programs use."""

HOLDS: Final = MappingProxyType({"tests": "test", "expect": "expectation", "sim": "simulation"})
"""What kind of object an attribute holds, or each entry of its list."""

TABLES: Final = MappingProxyType(
    {
        **dict.fromkeys(("steps", "functions", "flows", "queues", "topics"), REPLY),
        "callbacks": REPORT,
    }
)
"""The mocks: what each entry holds, alone or in a list."""


LISTS_OF_STEPS: Final = ("path", "pathIncludes", "never", "atMostOnce")
"""Attributes that list names and paths of steps; `atMostOnce` names of resources, too."""

KEYED_BY_STEPS: Final = ("steps", "callbacks", "calls", "compensated")
"""Attributes whose keys are names and paths of steps; those of `calls` can be names of resources, too."""


def real_kind(table: str, name: str) -> ObjectKind:
    """What an entry with `real` is: a sub-flow that runs, or a real call. An entry of `steps` is either."""
    runs = table == "flows" or (table == "steps" and not is_callee(name))
    return REAL if runs else REAL_CALL


KINDS: Final = (FILE, TEST, REPLY, REAL, REAL_CALL, REPORT, EXPECT, CALLS, UNDO, CLAIM, SIMULATION)
"""Every kind, in the order of the reference page."""
