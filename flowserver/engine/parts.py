"""The parts of one node's engine: which there are, what each is made from, and which of them run, drain and close.

To add a part, make it in `Parts` below all that it needs, and name it in the tuples at the end that say what it is:
`Engine` does the rest. The listener of the committer, the membership and the invocations is the engine itself.
"""

import asyncio
import logging

from flowserver.base.clock import Clock
from flowserver.base.clock_watch import ClockWatch
from flowserver.base.limited_log import LimitedLog
from flowserver.base.limits import Limits
from flowserver.base.task_tokens import TaskTokens
from flowserver.concurrency.shutdown import InterruptibleWork
from flowserver.concurrency.threads import Threads
from flowserver.engine.background_loop import BackgroundLoop
from flowserver.engine.clock_loop import ClockLoop
from flowserver.engine.cluster.lease import Lease
from flowserver.engine.cluster.membership import Membership, MembershipListener
from flowserver.engine.commit.batch_context import BatchContext
from flowserver.engine.commit.committer import CommitListener, Committer
from flowserver.engine.commit.execution_cache import ExecutionCache
from flowserver.engine.context import EngineContext
from flowserver.engine.deliveries.local_destinations import FunctionReceiver, QueueReceiver
from flowserver.engine.deliveries.publishing import Publisher
from flowserver.engine.deliveries.worker import DeliveryWorker
from flowserver.engine.disk_watch import DiskWatch
from flowserver.engine.executions.attempt_traces import AttemptTraces
from flowserver.engine.executions.dispatcher import Dispatcher
from flowserver.engine.executions.invocation_submitter import InvocationSubmitter
from flowserver.engine.executions.message_sender import MessageSender
from flowserver.engine.executions.recovery import TaskRecovery
from flowserver.engine.executions.starting import Starter
from flowserver.engine.executions.step_calls import StepCalls
from flowserver.engine.executions.timers import StepTimers
from flowserver.engine.executions.watchers import Watchers
from flowserver.engine.functions.call_slots import CallSlots
from flowserver.engine.functions.endpoint_lookup import EndpointLookup
from flowserver.engine.functions.function_metrics import FunctionMetrics
from flowserver.engine.invocations.invocations import InvocationListener, Invocations
from flowserver.engine.invocations.recovery import InvocationRecovery
from flowserver.engine.invocations.retention import InvocationRetention
from flowserver.engine.invocations.retry_timer import RetryTimer
from flowserver.engine.options import DEFAULTS, EngineOptions
from flowserver.engine.queues.expiry import MessageExpiry
from flowserver.engine.queues.queues import Queues
from flowserver.engine.reads.lookup_reader import Reader
from flowserver.engine.reads.slow_reads import SlowReads
from flowserver.engine.recovery import Recovery
from flowserver.engine.reports_to_waiting_tasks import Callbacks
from flowserver.engine.retention import ExecutionRetention
from flowserver.engine.schedules.loop import ScheduleLoop
from flowserver.invokers.broker_clients import Outlets
from flowserver.invokers.calls import Invoker
from flowserver.invokers.hooks import Hooks
from flowserver.invokers.measured_calls import MeasuredInvoker
from flowserver.invokers.remote_destinations import Senders
from flowserver.machine.attempts_under_way import AttemptsUnderWay
from flowserver.machine.deliveries.destinations import FunctionAddress, QueueAddress, TopicAddress
from flowserver.metrics.process_metrics import Metrics
from flowserver.store.definition_cache import DefinitionCache
from flowserver.store.integrity.disk_reserve import DiskReserve
from flowserver.store.sql.database import Database

CHECK_THREADS = 1
"""Definitions that are checked at once. Checking keeps Python busy: a second thread would slow everything else."""


class Parts(CommitListener, MembershipListener, InvocationListener):
    """The parts of an engine. `Engine` is these, their lifecycle, and what they tell their listener."""

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        limits: Limits,
        tokens: TaskTokens,
        node_id: str,
        options: EngineOptions = DEFAULTS,
        invoker: Invoker | None = None,
    ) -> None:
        self.database = database
        self.clock = clock
        differ, settle = limits.clock_differ_seconds, limits.clock_settle_seconds
        self.clock_watch = watch = ClockWatch(clock, differ_seconds=differ, settle_seconds=settle)
        self.limits = limits
        self.missing_source = options.missing_source
        self.tokens = tokens
        self.encryption = options.encryption
        self.metrics = Metrics(limits)
        self.interruptible = InterruptibleWork()
        self._waits_log = LimitedLog(logging.getLogger("flowserver.engine.engine"))
        self._following: set[asyncio.Task[object]] = set()  # the work of `Engine.follow`

        # The writer, the readers, and what most parts are made from.
        self.lease = Lease(node_id)
        cache = ExecutionCache(limits.cached_executions_bytes_max)
        batches = BatchContext(clock, limits, options.missing_source, tokens, self.lease, DefinitionCache(), cache)
        self.committer = Committer(database, batches, self)
        self.reader = Reader(database, limits)
        self.slow_reads = SlowReads(database, limits)
        self.checks = Threads("checks", CHECK_THREADS, waiting_max=limits.pending_messages_max)
        self.membership = Membership(database, self.lease, clock, watch, self)
        self.disk = DiskReserve(database.sqlite_file, options.disk_reserve_bytes, data_bytes_max=options.data_bytes_max)
        self.context = context = EngineContext(
            database, self.committer, self.reader, self.lease, self.membership, tokens, clock, watch, limits, self.disk
        )
        self.attempts = AttemptsUnderWay()
        self.traces = None if options.tracer is None else AttemptTraces(options.tracer, self.reader, self.metrics)
        self._make_rooms(context, options, MeasuredInvoker(limits, invoker))

        # What runs, what is drained when the engine leaves, and what is closed last, in this order.
        due = self.timers, self.schedules, self.retries, self.deliveries
        self.due_loops = {loop.name: loop for loop in due}
        recoverable = self.task_recovery, InvocationRecovery(context, self.invocations)
        self.recovery = Recovery(context, recoverable)
        periodic = self.retention, self.expiry, self.invocation_retention, DiskWatch(context), self.clock_loop
        self.loops: tuple[BackgroundLoop, ...] = (self.recovery, *due, *periodic)
        self.drained = self.dispatcher, self.invocations, self.deliveries
        self.connections = self.reader, self.invoker, self.outlets
        self.threads = self.slow_reads, self.checks, self.starter, self.membership

    def _make_rooms(self, context: EngineContext, options: EngineOptions, invoker: MeasuredInvoker) -> None:
        limits, clock = context.limits, context.clock
        # Functions: how calls leave this node.
        self.invoker = invoker
        self.metrics.named.register(FunctionMetrics(invoker.health))
        self.outlets = Outlets(options.outlets)
        self.endpoints = EndpointLookup(self.reader, options.encryption)
        self.hooks = Hooks(invoker)
        self.slots = CallSlots(limits, lambda: self.membership.share.nodes)
        self.callbacks = Callbacks(context)
        # Invocations, queues and deliveries.
        self.invocations = Invocations(context, self.endpoints, invoker, self.hooks, self.slots, self.callbacks, self)
        self.retries = RetryTimer(context, self.invocations.take_over)
        self.invocation_retention = InvocationRetention(context)
        self.queues = Queues(context, self.outlets)
        self.expiry = MessageExpiry(context)
        self.deliveries = DeliveryWorker(context, Senders(invoker, self.outlets))
        self.topics = Publisher(context, self.deliveries)
        is_encoding = options.queue_bodies == "base64"
        self.deliveries.open(TopicAddress, self.topics.take_in)
        self.deliveries.open(QueueAddress, QueueReceiver(self.queues, clock, is_encoding=is_encoding))
        self.deliveries.open(FunctionAddress, FunctionReceiver(self.invocations))
        # Executions and schedules.
        self.watchers = Watchers()
        self.starter = Starter(context, options.child_lifecycle)
        submitter = InvocationSubmitter(self.invocations, limits)
        sender = MessageSender(self.queues, self.topics, self.outlets, options.queue_bodies)
        self.step_calls = StepCalls(
            context, invoker, self.endpoints, self.starter, sender, submitter, self.hooks, self.traces
        )
        self.dispatcher = Dispatcher(context, self.endpoints, self.slots, self.step_calls)
        self.timers = StepTimers(context, self.metrics.woke)
        self.task_recovery = TaskRecovery(context, self.dispatcher, self.callbacks)
        self.retention = ExecutionRetention(context, options.rules, self.metrics.deleted)
        self.schedules = ScheduleLoop(context, self.starter, self.metrics.schedules)
        self.clock_loop = ClockLoop(context, self.schedules.compute_again)
