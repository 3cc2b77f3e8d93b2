"""The flows that the benchmarks run, as texts."""

import json

FUNCTION = "acs:fc:::services/bench/functions/"
INPUT = '{"order":{"id":12345,"items":[1,2,3]},"note":"hello"}'


def calls(steps: int = 5) -> str:
    """So many function calls, one after another."""
    return _flow(*(f"{{type: task, name: call{n}, resourceArn: '{FUNCTION}echo'}}" for n in range(steps)))


def passes(steps: int = 10) -> str:
    """So many steps that do nothing."""
    return _flow(*(f"{{type: pass, name: pass{n}}}" for n in range(steps)))


def each() -> str:
    """One call for each of `$input.items`. The outputs are kept small, because 10,000 of them are one step's data."""
    call = (
        f"{{type: task, name: call, resourceArn: '{FUNCTION}echo',"
        " inputMappings: [{target: item, source: $input.item}], outputMappings: [{target: ok, source: $local.ok}]}"
    )
    return _flow(
        f"{{type: foreach, name: each, iterationMapping: {{collection: $.items, item: item}}, steps: [{call}],"
        " outputMappings: [{target: done, source: true}]}"
    )


def items(count: int) -> str:
    """The input of `each`."""
    return json.dumps({"items": list(range(count))}, separators=(",", ":"))


def callback() -> str:
    """One step that waits until its token is reported; the function is told the token."""
    return _flow(
        f"{{type: task, name: suspended, pattern: waitForCallback, resourceArn: '{FUNCTION}token',"
        " inputMappings: [{target: token, source: $context.task.token}]}"
    )


def wait_until() -> str:
    """One wait step, until `$input.at`."""
    return _flow("{type: wait, name: until, timestamp: $.at}")


def polling() -> str:
    """The loop of the polling tutorial without its pause; the function counts `try_count` up to `$input.turns`."""
    return _flow(
        "{type: pass, name: Init, outputMappings: [{target: try_count, source: 0}]}",
        "{type: wait, name: Wait, duration: 0}",
        f"{{type: task, name: GetJobStatus, resourceArn: '{FUNCTION}poll', inputMappings: ["
        "{target: try_count, source: $local.try_count}, {target: turns, source: $input.turns}]}",
        "{type: choice, name: CheckJobComplete, inputMappings: [{target: status, source: $local.job_status}],"
        " choices: [{condition: '$.status == \"success\"', goto: JobSucceeded},"
        " {condition: '$.status == \"running\"', goto: Wait}]}",
        "{type: succeed, name: JobSucceeded}",
    )


def _flow(*steps: str) -> str:
    return "version: v1\ntype: flow\nsteps:\n" + "".join(f"  - {step}\n" for step in steps)
