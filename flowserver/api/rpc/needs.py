"""What each action needs of its caller."""

from typing import Final

from flowserver.operations.callers import Flows, Need

_NAMED: Final = "FlowName"

NEEDS: Final = {
    "CreateFlow": Need("flows.write", "Name"),
    "UpdateFlow": Need("flows.write", "Name"),
    "DeleteFlow": Need("flows.delete", "Name"),
    "DescribeFlow": Need("flows.read", "Name"),
    "ListFlows": Need("flows.read", Flows.OWN),
    "StartExecution": Need("executions.start", _NAMED),
    "StartSyncExecution": Need("executions.start", _NAMED),
    "StopExecution": Need("executions.stop", _NAMED),
    "DescribeExecution": Need("executions.read", _NAMED),
    "ListExecutions": Need("executions.list", _NAMED),
    "GetExecutionHistory": Need("executions.read", _NAMED),
    "ReportTaskSucceeded": Need("tasks.report", Flows.OWN),
    "ReportTaskFailed": Need("tasks.report", Flows.OWN),
    "CreateSchedule": Need("schedules.write", _NAMED),
    "UpdateSchedule": Need("schedules.write", _NAMED),
    "DeleteSchedule": Need("schedules.write", _NAMED),
    "DescribeSchedule": Need("flows.read", _NAMED),
    "ListSchedules": Need("flows.read", _NAMED),
    "PublishFlowVersion": Need("versions.publish", _NAMED),
    "ListFlowVersions": Need("flows.read", _NAMED),
    "DeleteFlowVersion": Need("versions.publish", _NAMED),
    "CreateFlowAlias": Need("aliases.write", _NAMED),
    "UpdateFlowAlias": Need("aliases.write", _NAMED),
    "DescribeFlowAlias": Need("flows.read", _NAMED),
    "ListFlowAliases": Need("flows.read", _NAMED),
    "DeleteFlowAlias": Need("aliases.write", _NAMED),
    "DescribeRegions": Need(None),
}
