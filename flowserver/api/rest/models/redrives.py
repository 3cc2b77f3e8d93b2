"""Redrives of executions."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field

from flowserver.api.rest.models.executions import Document
from flowserver.api.rest.models.shared_types import (
    DEFINITION_CHOICE_PATTERN,
    EXECUTION_PATTERN,
    LIMITS,
    TOKEN_PATTERN,
    NextToken,
    RequestBody,
    Resource,
    with_examples,
)
from flowserver.machine.state import Status
from flowserver.operations.planned_children import PLANNED_MAX, Does
from flowserver.operations.redrive_plans import SHOWN_MAX, RedrivePlan, RedriveWish, Why
from flowserver.operations.redrives import BulkRedrive, RefusedRedrive


def _as_text(given: object) -> object:
    return str(given) if isinstance(given, int) and not isinstance(given, bool) else given


DefinitionChoice = Annotated[
    str,
    BeforeValidator(_as_text, json_schema_input_type=str | int),
    Field(
        pattern=DEFINITION_CHOICE_PATTERN,
        description="`same`: the definition that the execution ended with; `current`: the flow's present one; or the "
        "number of a published version.",
    ),
]
FromStep = Annotated[
    str | None,
    Field(
        description="A step of the flow's own list of steps: the execution goes back to it, with the `$local` that it "
        "was entered with last. If absent, the execution goes on where it failed or was aborted."
    ),
]

Children = Annotated[
    Literal["continue", "new"],
    Field(
        description="What steps that run again do about their sub-flows: `continue` the executions of their last "
        "attempts where these failed, or start `new` ones."
    ),
]


def wished(definition: str) -> Literal["same", "current"] | int:
    """The definition that a request names."""
    if definition == "same":
        return "same"
    return "current" if definition == "current" else int(definition)


class RedriveExecution(RequestBody):
    """How to redrive an execution; everything may be absent, and so may the body."""

    model_config = with_examples({"definition": "current", "clientToken": "8f0c2a"})

    from_: Annotated[FromStep, Field(alias="from")] = None
    definition: DefinitionChoice = "same"
    input: Annotated[
        Document | None,
        Field(
            description="New input of the step that failed, or that was aborted if none failed. Only if it is one step."
        ),
    ] = None
    client_token: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=64,
            description="Makes the redrive idempotent: with that of the execution's last redrive nothing changes.",
        ),
    ] = None
    children: Children = "continue"
    dry_run: Annotated[bool, Field(description="Only say what the redrive would do.")] = False

    @property
    def wish(self) -> RedriveWish:
        """The redrive that is asked for."""
        return RedriveWish(
            from_step=self.from_,
            definition=wished(self.definition),
            input=self.input,
            client_token=self.client_token,
            children=self.children,
        )


class StepAgain(Resource):
    """A step that runs again."""

    path: Annotated[str, Field(description="`pay`; `pack[17].label` in iteration 17 of the step `pack`.")]
    why: Annotated[Why, Field(description="`asked` if the request names it with `from`.")]


class StepKept(Resource):
    """A step that does not run again."""

    step: str
    times: Annotated[int, Field(description="How often it has succeeded.")]
    undone_by: Annotated[
        str | None, Field(description="The later step that has undone its work, by the names of both; null if none.")
    ]


class SubFlowAgain(Resource):
    """What a sub-flow step does when it runs again."""

    parent: Annotated[str, Field(description="FLOW/NAME of the execution whose step it is.")]
    path: Annotated[str, Field(description="The step.")]
    does: Annotated[
        Does,
        Field(
            description="`continues`: its last execution goes on where it failed. `starts`: a new one. `joins`: it "
            "finds one of that name running, and does not wait for it. `fails`: at once."
        ),
    ]
    child: Annotated[
        str | None, Field(description="FLOW/NAME of that execution; null if there is none, or the key is not for it.")
    ]
    reason: Annotated[
        str | None,
        Field(description="Why the last execution is not continued, or the error with which the step fails."),
    ]


RedriveInstead = Annotated[
    str | None,
    Field(description="FLOW/NAME of the execution that took the end of this one, if it can be redriven; else null."),
]


class RedrivePreview(Resource):
    """What a redrive would do."""

    model_config = with_examples(
        {
            "redrivable": True,
            "reasons": [],
            "endReported": False,
            "redriveInstead": None,
            "againCount": 7,
            "failedCount": 1,
            "abortedCount": 6,
            "callsAgainCount": 7,
            "again": [{"path": "pack[17].label", "why": "failed"}],
            "keptCount": 495,
            "kept": [
                {"step": "charge", "times": 1, "undoneBy": "refund"},
                {"step": "label", "times": 494, "undoneBy": None},
            ],
            "children": [],
        }
    )

    redrivable: bool
    reasons: Annotated[list[str], Field(description="Why it cannot be made.")]
    end_reported: Annotated[
        bool,
        Field(description="Whether it cannot be made because the execution that waited for this one took its end."),
    ]
    redrive_instead: RedriveInstead
    again_count: int
    failed_count: Annotated[int, Field(description="How many of these steps failed; 0 with `from`.")]
    aborted_count: Annotated[
        int, Field(description="How many were aborted because another failed or the execution ended; 0 with `from`.")
    ]
    calls_again_count: Annotated[
        int, Field(description="Calls of functions that are made again with the same input and idempotency key.")
    ]
    again: Annotated[
        list[StepAgain], Field(description=f"Steps that run again, at most {SHOWN_MAX}, those that failed first.")
    ]
    kept_count: int
    kept: Annotated[list[StepKept], Field(description=f"Steps that do not, at most {SHOWN_MAX}.")]
    children: Annotated[
        list[SubFlowAgain],
        Field(
            description=f"What sub-flow steps do that run again at once, at most {PLANNED_MAX}, also those of "
            "executions that are continued."
        ),
    ]

    @classmethod
    def of(cls, plan: RedrivePlan) -> Self:
        """The preview of a plan."""
        return cls(
            redrivable=not plan.reasons,
            reasons=plan.reasons[:SHOWN_MAX],
            end_reported=plan.is_end_reported,
            redrive_instead=plan.redrive_instead,
            again_count=plan.again_count,
            failed_count=plan.failed_count,
            aborted_count=plan.again_count - plan.failed_count if plan.message.rewind is None else 0,
            calls_again_count=plan.calls_again_count,
            again=[StepAgain(path=each.path, why=each.why) for each in plan.again],
            kept_count=plan.kept.total(),
            kept=[
                StepKept(step=name, times=times, undone_by=plan.undone.get(name))
                for name, times in list(plan.kept.items())[:SHOWN_MAX]
            ],
            children=[
                SubFlowAgain(
                    parent=each.parent, path=each.path, does=each.does, child=each.child, reason=each.reason or None
                )
                for each in plan.children
            ],
        )


class RedriveMany(RequestBody):
    """Which executions of a flow to redrive, and how; all conditions must hold."""

    model_config = with_examples(
        {"status": "Failed", "error": "FC.Unknown", "definition": "current", "clientToken": "8f0c2a", "limit": 20}
    )

    status: Annotated[Status, Field(strict=False, description="`Failed`, `Stopped` or `TimedOut`.")] = Status.FAILED
    waiting_for_redrive: Annotated[
        bool, Field(description="Instead of these, executions that run and wait for a redrive.")
    ] = False
    started_from: Annotated[str | None, Field(description="Only executions started at this instant or later.")] = None
    started_to: Annotated[str | None, Field(description="Only executions started at this instant or before.")] = None
    name_prefix: Annotated[
        str | None, Field(pattern=TOKEN_PATTERN, description="Only executions whose names begin so.")
    ] = None
    error: Annotated[str | None, Field(description="Only executions that ended with this error.")] = None
    executions: Annotated[
        list[Annotated[str, Field(pattern=EXECUTION_PATTERN)]] | None,
        Field(
            min_length=1,
            max_length=LIMITS.executions_page_max,
            description="Only executions with these names, such as those of a listing that a person has confirmed.",
        ),
    ] = None
    definition: DefinitionChoice = "same"
    from_: Annotated[FromStep, Field(alias="from")] = None
    children: Children = "continue"
    client_token: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=64,
            description="Makes the request idempotent: executions whose last redrive had this token are left as they "
            "are, also if they have failed again. Send it with each page and each repeat; choose a new one to redrive "
            "them once more.",
        ),
    ] = None
    limit: Annotated[
        int | None, Field(ge=1, le=LIMITS.executions_page_max, description="How many executions to look at.")
    ] = None
    next_token: Annotated[str | None, Field(pattern=TOKEN_PATTERN, description="`nextToken` of the answer before.")] = (
        None
    )


class RefusedExecution(Resource):
    """An execution that was left as it was."""

    name: str
    reason: str
    code: Annotated[
        str,
        Field(
            description="The error of a redrive of this execution alone. `ExecutionEndReported`: the execution that "
            "waited for this one, as for a sub-flow, has taken its end."
        ),
    ]
    redrive_instead: RedriveInstead


class ManyRedriven(Resource):
    """What a bulk redrive did."""

    model_config = with_examples(
        {"redriven": 1, "executions": ["order-4711"], "repeated": [], "refused": [], "nextToken": None}
    )

    redriven: int
    executions: list[str]
    repeated: Annotated[
        list[str],
        Field(
            description="Executions that a request with the same `clientToken` had redriven, and that match again, "
            "because they have failed again. They are left as they are."
        ),
    ]
    refused: list[RefusedExecution]
    next_token: NextToken

    @classmethod
    def of(cls, done: BulkRedrive) -> Self:
        """The answer."""
        return cls(
            redriven=len(done.redriven),
            executions=list(done.redriven),
            repeated=list(done.repeated),
            refused=[_refused(each) for each in done.refused],
            next_token=done.next_token,
        )


def _refused(each: RefusedRedrive) -> RefusedExecution:
    return RefusedExecution(name=each.name, reason=each.reason, code=each.code, redrive_instead=each.redrive_instead)
