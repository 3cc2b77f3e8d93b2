"""Which mock answers a call, and with which of its replies: the mocks of a case before those of its file."""

from collections.abc import Iterator

from flowserver.flowtests.cases import Case, Mock, Mocks, Reply, Table, TestFile
from flowserver.flowtests.findings import Finding
from flowserver.flowtests.resource_names import meant_by_key
from flowserver.flowtests.step_paths import names_step
from flowserver.language.graph import ActionTarget, FlowTarget, QueueTarget, Target, TopicTarget
from flowserver.language.resources import FLOW_FORM, START_EXECUTION


class Supply:
    """The replies of one mock that are left, in one run."""

    def __init__(self, mock: Mock, *, is_own: bool) -> None:
        self.mock = mock
        self.is_own = is_own
        """Whether the case has it, rather than the file."""
        self.taken = 0
        self._position = 0
        self._used = 0

    def take(self) -> Reply | None:
        """The next reply; None if all are used up."""
        replies = self.mock.replies
        while self._position < len(replies):
            reply = replies[self._position]
            if reply.times is None or self._used < reply.times:
                self._used += 1
                self.taken += 1
                return reply
            self._position += 1
            self._used = 0
        return None


class CaseMocks:
    """The mocks of one run of a case."""

    def __init__(self, file: TestFile, case: Case) -> None:
        self._file = file
        self._layers = ((case.mocks, True), (file.mocks, False))
        self._supplies: dict[int, Supply] = {}
        self._count = sum(len(table) for mocks, _ in self._layers for table in _tables(mocks).values())

    def __len__(self) -> int:
        """How many there are."""
        return self._count

    def for_call(self, target: Target, flow_name: str | None, path: str, name: str) -> Supply | None:
        """The mock for the call of a step; `flow_name` is that of the sub-flow which it starts."""
        for mocks, is_own in self._layers:
            found = _of_step(mocks.steps, path, name) or _of_resource(mocks, target, flow_name)
            if found is not None:
                return self._supply(found, is_own)
        return None

    def for_callback(self, path: str, name: str) -> Supply | None:
        """The mock for the report on a step that waits for one."""
        for mocks, is_own in self._layers:
            found = _of_step(mocks.callbacks, path, name)
            if found is not None:
                return self._supply(found, is_own)
        return None

    def used(self) -> Iterator[tuple[Mock, int]]:
        """The mocks that answered a call, each with how many replies it gave."""
        supplies = self._supplies.values()
        return ((supply.mock, supply.taken) for supply in supplies if supply.taken or supply.mock.real)

    def unused(self) -> Iterator[Finding]:
        """A warning for each mock of the case that has replies left. None may be any number of calls."""
        for kind, mock in all_mocks(self._layers[0][0]):
            supply = self._supplies.get(id(mock))
            place = self._file.place(mock.span)
            if supply is None and mock.answers_any_number:
                continue
            if supply is None:
                yield Finding(f"the mock `{mock.key}` of {kind} is not used", place)
            elif (given := replies_of(mock)) is not None and supply.taken < given:
                yield Finding(f"{supply.taken} of the {given} replies of `{mock.key}` are used", place)

    def _supply(self, mock: Mock, is_own: bool) -> Supply:
        return self._supplies.setdefault(id(mock), Supply(mock, is_own=is_own))


def replies_of(mock: Mock) -> int | None:
    """How many calls it has replies for; None if it answers any number."""
    if mock.callee is not None or mock.real is not None:
        return None
    times = [reply.times for reply in mock.replies]
    return None if None in times else sum(each or 0 for each in times)


def all_mocks(mocks: Mocks) -> Iterator[tuple[str, Mock]]:
    """Each mock with its kind."""
    return ((kind, mock) for kind, table in _tables(mocks).items() for mock in table.values())


def _tables(mocks: Mocks) -> dict[str, Table]:
    return {
        "steps": mocks.steps,
        "callbacks": mocks.callbacks,
        "functions": mocks.functions,
        "flows": mocks.flows,
        "queues": mocks.queues,
        "topics": mocks.topics,
    }


def _of_step(table: Table, path: str, name: str) -> Mock | None:
    """The mock whose key says most of the step: its path, then a path with `[]`, then its name."""
    if not table:
        return None
    if path in table and path != name:
        return table[path]
    found = [mock for key, mock in table.items() if names_step(key, path, name)]
    return max(found, key=lambda mock: len(mock.key), default=None)


def _of_resource(mocks: Mocks, target: Target, flow_name: str | None) -> Mock | None:
    if flow_name is not None and not isinstance(target, FlowTarget):
        target = FlowTarget(FLOW_FORM.replace("{flowName}", flow_name), flow_name)
    found = [mock for key, mock in table_for(mocks, target).items() if meant_by_key(key, target)]
    return max(found, key=lambda mock: len(mock.key), default=None)


def table_for(mocks: Mocks, target: Target) -> Table:
    """The mocks for resources of this kind."""
    return getattr(mocks, kind_of(target))  # type: ignore[no-any-return]


def kind_of(target: Target) -> str:
    """The attribute of test files that has the mocks for resources of this kind."""
    match target:
        case FlowTarget():
            return "flows"
        case QueueTarget():
            return "queues"
        case TopicTarget():
            return "topics"
        case ActionTarget(action) if action == START_EXECUTION:
            return "flows"
        case _:
            return "functions"
