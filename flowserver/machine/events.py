"""History events: the closed list of types that GetExecutionHistory documents, and the record of one event."""

from dataclasses import dataclass
from enum import StrEnum


class EventType(StrEnum):
    """Event types of the API (version 2019-03-15)."""

    EXECUTION_STARTED = "ExecutionStarted"
    EXECUTION_SUCCEEDED = "ExecutionSucceeded"
    EXECUTION_FAILED = "ExecutionFailed"
    EXECUTION_STOPPED = "ExecutionStopped"
    EXECUTION_TIMED_OUT = "ExecutionTimedOut"
    STEP_ENTERED = "StepEntered"
    STEP_STARTED = "StepStarted"
    STEP_SUCCEEDED = "StepSucceeded"
    STEP_FAILED = "StepFailed"
    STEP_EXITED = "StepExited"
    BRANCH_ENTERED = "BranchEntered"
    BRANCH_EXITED = "BranchExited"
    ITERATION_ENTERED = "IterationEntered"
    ITERATION_EXITED = "IterationExited"
    TASK_SCHEDULED = "TaskScheduled"
    TASK_STARTED = "TaskStarted"
    TASK_SUBMITTED = "TaskSubmitted"
    TASK_SUBMIT_FAILED = "TaskSubmitFailed"
    TASK_SUCCEEDED = "TaskSucceeded"
    TASK_FAILED = "TaskFailed"
    TASK_TIMED_OUT = "TaskTimedOut"


@dataclass(slots=True)
class Event:
    """One history event. Ids count from 1 without gaps; `detail` is the JSON text of an object.

    Nobody changes one; it is not frozen because making a frozen one costs three times as much.
    """

    event_id: int
    schedule_event_id: int
    """Id of the event that caused this one; 0 for the first."""
    type: EventType
    step_name: str
    """"" for events of the execution itself."""
    time_ms: int
    detail: str
