"""All operations of one server."""

from dataclasses import dataclass

from flowserver.concurrency.threads import Threads
from flowserver.engine.engine import Engine
from flowserver.invokers.forbidden_addresses import ORDINARY, AddressRules
from flowserver.operations.access import AccessOperations
from flowserver.operations.aliases import AliasOperations
from flowserver.operations.async_configs import AsyncConfigOperations
from flowserver.operations.async_invocations import AsyncInvocationOperations
from flowserver.operations.audit import AuditLog
from flowserver.operations.audited import AuditLevel
from flowserver.operations.current_steps import CurrentStepOperations
from flowserver.operations.executions import ExecutionOperations
from flowserver.operations.flow_tests import FlowTestOperations
from flowserver.operations.flows import FlowOperations
from flowserver.operations.functions import FunctionOperations
from flowserver.operations.held_requests import HeldRequests
from flowserver.operations.history_folds import HistoryFolds
from flowserver.operations.history_search import HistorySearch
from flowserver.operations.invocations import InvocationOperations
from flowserver.operations.key_sources import EngineKeys
from flowserver.operations.live_histories import LiveHistories
from flowserver.operations.monitoring import MonitoringOperations
from flowserver.operations.nodes import NodeOperations
from flowserver.operations.overview import OverviewOperations
from flowserver.operations.queues import QueueOperations
from flowserver.operations.redrives import RedriveOperations
from flowserver.operations.schedules import ScheduleOperations
from flowserver.operations.secrets import SecretOperations
from flowserver.operations.sign_in_links import SignInLinkOperations
from flowserver.operations.step_summaries import StepSummaryOperations
from flowserver.operations.subscriptions import SubscriptionOperations
from flowserver.operations.tasks import TaskOperations
from flowserver.operations.topics import TopicOperations
from flowserver.operations.versions import VersionOperations


@dataclass(frozen=True, slots=True)
class Place:
    """The server's region, which is a name and nothing else, and the address that it listens on."""

    region: str = "local"
    endpoint: str = ""


@dataclass(frozen=True, slots=True)
class Operations:
    """The operations that a facade may call."""

    flows: FlowOperations
    flow_tests: FlowTestOperations
    versions: VersionOperations
    aliases: AliasOperations
    executions: ExecutionOperations
    redrives: RedriveOperations
    history_search: HistorySearch
    live_histories: LiveHistories
    step_summaries: StepSummaryOperations
    current_steps: CurrentStepOperations
    schedules: ScheduleOperations
    tasks: TaskOperations
    functions: FunctionOperations
    secrets: SecretOperations
    invocations: InvocationOperations
    async_configs: AsyncConfigOperations
    async_invocations: AsyncInvocationOperations
    queues: QueueOperations
    topics: TopicOperations
    subscriptions: SubscriptionOperations
    access: AccessOperations
    sign_in_links: SignInLinkOperations
    monitoring: MonitoringOperations
    overview: OverviewOperations
    nodes: NodeOperations
    audit: AuditLog
    encoding: Threads
    """Encodes pages of lists beside the event loop."""
    place: Place

    @staticmethod
    def of(
        engine: Engine,
        *,
        is_wide: bool = False,
        lenient: bool = False,
        place: Place = Place(),
        addresses: AddressRules = ORDINARY,
        audit_level: AuditLevel = "changes",
    ) -> "Operations":
        """The operations on an engine. `is_wide`: the server listens beyond loopback. `lenient`: the server accepts
        definitions with unknown or empty attributes. `addresses`: what the engine's invoker calls.
        """
        audit = AuditLog(engine, audit_level)
        folds = HistoryFolds(engine)
        search = HistorySearch(engine, folds)
        held = HeldRequests(engine.limits.held_requests_per_key_max)
        access = AccessOperations(EngineKeys(engine), engine.clock, engine.limits, is_wide=is_wide)
        return Operations(
            FlowOperations(engine, audit, lenient=lenient),
            FlowTestOperations(engine, lenient=lenient),
            VersionOperations(engine, audit),
            AliasOperations(engine, audit),
            ExecutionOperations(engine, audit, held),
            RedriveOperations(engine, audit),
            search,
            LiveHistories(engine, search, held),
            StepSummaryOperations(engine, folds),
            CurrentStepOperations(engine),
            ScheduleOperations(engine, audit),
            TaskOperations(engine, audit),
            FunctionOperations(engine, audit, addresses),
            SecretOperations(engine, audit),
            InvocationOperations(engine, audit),
            AsyncConfigOperations(engine, audit),
            AsyncInvocationOperations(engine, audit),
            QueueOperations(engine, audit, held),
            TopicOperations(engine, audit),
            SubscriptionOperations(engine, audit),
            access,
            SignInLinkOperations(engine, access),
            MonitoringOperations(engine, is_wide=is_wide),
            OverviewOperations(engine),
            NodeOperations(engine),
            audit,
            Threads("encoding", waiting_max=engine.limits.pending_messages_max),
            place,
        )

    def close(self) -> None:
        """End their threads; no operation may follow."""
        self.flow_tests.close()
        self.monitoring.close()
        self.encoding.close()
