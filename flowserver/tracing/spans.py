"""A finished span, and what takes it. Knows no SDK, so that nothing of it is loaded while tracing is off."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from flowserver.base.lazy_import import load
from flowserver.base.span_ids import SpanRef

SpanKind = Literal["internal", "server", "client"]

TracingSetting = Literal["off", "otlp"]

OTLP_TRACER: Final = "flowserver.tracing.otlp:otlp_tracer"


class TracingUnavailable(Exception):
    """The setting `tracing` needs a package that is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSpan:
    """What is over. Attributes are names, ids and numbers of the server's own: no inputs, outputs, causes or tokens."""

    name: str
    kind: SpanKind
    ref: SpanRef
    parent: SpanRef | None = None
    start_ns: int
    end_ns: int
    attributes: Mapping[str, str | int]
    links: Sequence[SpanRef] = field(default_factory=tuple)
    error: str | None = None
    """What to call the failure, if it has failed; "" if it has no name."""


class Tracer(Protocol):
    """Takes spans. Use it in the event loop."""

    def ref_of(self, execution_id: str, event_id: int) -> SpanRef:
        """The span of what this event of the execution began. The same on every node."""
        ...

    def new_ref(self, parent: SpanRef | None) -> SpanRef:
        """A span of no execution, in the parent's trace or in one of its own."""
        ...

    def add(self, span: FinishedSpan) -> None:
        """Have the span exported. It never waits: with a full queue the span is dropped and counted."""
        ...

    def lose(self) -> None:
        """Count a span that could not be made."""
        ...

    @property
    def dropped(self) -> Mapping[str, int]:
        """Spans that were not exported, by reason."""
        ...

    def close(self) -> None:
        """Export what waits, for a few seconds at most. Blocks."""
        ...


def tracer_maker(setting: TracingSetting) -> Callable[[int], Tracer | None]:
    """What makes the tracer of a process, or None if tracing is off, given how many spans may wait.

    A tracer has a thread, so each process makes its own once it is forked. Raises TracingUnavailable.
    """
    if setting == "off":
        return lambda _: None
    try:
        make: Callable[[int], Tracer] = load(OTLP_TRACER)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("flowserver"):
            raise
        raise TracingUnavailable(
            f"there is no {error.name}, which the setting tracing={setting} needs: pip install 'flowserver[otel]'"
        ) from None
    return make
