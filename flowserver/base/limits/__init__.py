"""Every limit of the server, in one table, in two profiles.

`default` is generous; `cloud` holds the numbers that the cloud service documents. Each row says why the limit is
there and what a caller sees when it is passed. docs/reference/limits.md is made from this table. The modules of this
package hold its rows, one for each subject.
"""

from dataclasses import dataclass, fields
from typing import Literal

from flowserver.base.limits.calls import CallLimits
from flowserver.base.limits.clock import ClockLimits
from flowserver.base.limits.executions import ExecutionLimits
from flowserver.base.limits.flow_tests import FlowTestLimits
from flowserver.base.limits.flows import FlowLimits
from flowserver.base.limits.metrics import MetricLimits
from flowserver.base.limits.queues import QueueLimits
from flowserver.base.limits.requests import RequestLimits

RETENTION_DAYS_MAX = 36_500
"""A century; more is for ever, which is said with 0."""

LimitsProfile = Literal["default", "cloud"]


@dataclass(frozen=True, kw_only=True)
class Limits(
    ClockLimits, MetricLimits, FlowTestLimits, QueueLimits, CallLimits, ExecutionLimits, FlowLimits, RequestLimits
):
    """The limits in force; the field defaults are the `default` profile. The rows of the last base come first."""

    @staticmethod
    def of(profile: LimitsProfile) -> "Limits":
        """The limits of a profile."""
        if profile == "default":
            return Limits()
        return Limits(**{row.name: row.metadata["cloud"] for row in fields(Limits)})
