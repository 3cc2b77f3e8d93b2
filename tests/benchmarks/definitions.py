"""The definitions of the benchmarks' flows."""

import json

FUNCTION = "acs:fc:::services/bench/functions/"
INPUT = '{"order":{"id":12345,"items":[1,2,3]},"note":"hello"}'


def calls(steps: int = 5) -> str:
    """A sequence of function calls."""
    return _flow(*(f"{{type: task, name: call{n}, resourceArn: '{FUNCTION}echo'}}" for n in range(steps)))


def passes(steps: int = 10) -> str:
    """A sequence of pass steps."""
    return _flow(*(f"{{type: pass, name: pass{n}}}" for n in range(steps)))


def each() -> str:
    """One call for each of `$input.items`. The outputs are small, because 10,000 of them are the data of one step."""
    call = (
        f"{{type: task, name: call, resourceArn: '{FUNCTION}echo',"
        " inputMappings: [{target: item, source: $input.item}], outputMappings: [{target: ok, source: $local.ok}]}"
    )
    return _flow(
        f"{{type: foreach, name: each, iterationMapping: {{collection: $.items, item: item}}, steps: [{call}],"
        " outputMappings: [{target: done, source: true}]}"
    )


def each_pass() -> str:
    """A pass step for each of `$input.items`; it sees all items."""
    return _each("{type: pass, name: step}")


def each_callback() -> str:
    """A step that waits for the report of its token, for each of `$input.items`."""
    return _each(
        f"{{type: task, name: step, pattern: waitForCallback, resourceArn: '{FUNCTION}token',"
        " inputMappings: [{target: token, source: $context.task.token}], outputMappings: []}"
    )


def _each(step: str) -> str:
    return _flow(
        f"{{type: foreach, name: each, iterationMapping: {{collection: $.items, item: item}}, steps: [{step}],"
        " outputMappings: [{target: done, source: true}]}"
    )


def objects(count: int) -> str:
    """The same input as `items` makes, of objects of about 117 bytes."""
    made = [{"id": number, "customer": "c" * 50, "amount": 12.5, "note": "n" * 19} for number in range(count)]
    return json.dumps({"items": made}, separators=(",", ":"))


def items(count: int) -> str:
    """The input of `each`."""
    return json.dumps({"items": list(range(count))}, separators=(",", ":"))


def callback() -> str:
    """One step that waits until its token is reported; the function gets the token."""
    return _flow(
        f"{{type: task, name: suspended, pattern: waitForCallback, resourceArn: '{FUNCTION}token',"
        " inputMappings: [{target: token, source: $context.task.token}]}"
    )


def callback_then_each() -> str:
    """A step that waits until its token is reported, then one call for each of `$input.items`."""
    call = f"{{type: task, name: call, resourceArn: '{FUNCTION}echo', outputMappings: [{{target: ok, source: true}}]}}"
    return _flow(
        f"{{type: task, name: suspended, pattern: waitForCallback, resourceArn: '{FUNCTION}token',"
        " inputMappings: [{target: token, source: $context.task.token}]}",
        "{type: foreach, name: each, inputMappings: [{target: items, source: $input.items}],"
        f" iterationMapping: {{collection: $.items, item: item}}, steps: [{call}],"
        " outputMappings: [{target: done, source: true}]}",
    )


def wait_until() -> str:
    """One wait step, until `$input.at`."""
    return _flow("{type: wait, name: until, timestamp: $.at}")


def polling(pause_seconds: int = 0) -> str:
    """The loop of the polling tutorial; the function counts `try_count` up to `$input.turns`."""
    return _flow(
        "{type: pass, name: Init, outputMappings: [{target: try_count, source: 0}]}",
        f"{{type: wait, name: Wait, duration: {pause_seconds}}}",
        f"{{type: task, name: GetJobStatus, resourceArn: '{FUNCTION}poll', inputMappings: ["
        "{target: try_count, source: $local.try_count}, {target: turns, source: $input.turns}]}",
        "{type: choice, name: CheckJobComplete, inputMappings: [{target: status, source: $local.job_status}],"
        " choices: [{condition: '$.status == \"success\"', goto: JobSucceeded},"
        " {condition: '$.status == \"running\"', goto: Wait}]}",
        "{type: succeed, name: JobSucceeded}",
    )


# Flows of hostile neighbours (attacks.py)


def nested_waits() -> str:
    """Both collections of the input, nested, around a wait of a minute."""
    wait = "{type: wait, name: wait, duration: 60}"
    inner = (
        "{type: foreach, name: inner, inputMappings: [{target: items, source: $input.inner}, {target: text, source:"
        f" $input.text}}], iterationMapping: {{collection: $.items, item: item}}, steps: [{wait}]}}"
    )
    return _flow(
        "{type: foreach, name: outer, iterationMapping: {collection: $.outer, item: item}, steps: [" + inner + "]}"
    )


def each_keeping(function: str) -> str:
    """One call of `hostile/FUNCTION` for each of `$input.items`, whose replies are kept whole."""
    arn = "acs:fc:::services/hostile/functions/" + function
    call = f"{{type: task, name: call, resourceArn: '{arn}'}}"
    return _flow(
        f"{{type: foreach, name: each, iterationMapping: {{collection: $.items, item: item}}, steps: [{call}]}}"
    )


def hot_loop() -> str:
    """A loop without a pause that carries `$input.text` along."""
    return _flow(
        "{type: pass, name: Again, outputMappings: [{target: text, source: $input.text}]}",
        "{type: choice, name: Go, choices: [{condition: '$.none == \"x\"', goto: Over}], default: {goto: Again}}",
        "{type: succeed, name: Over}",
    )


def aliases(count: int = 9_000) -> str:
    """A definition of 42 KB with many aliases of one option, whose goto resembles every step's name and
    matches none.
    """
    option = f"&a {{condition: '1 == 1', goto: {_LIKE}xy}}"
    choice = f"{{type: choice, name: c, choices: [{option}{',*a' * count}]}}"
    return _flow(choice, *(f"{{type: pass, name: {_LIKE}{n}}}" for n in range(99)))


def gotos(count: int = 3_800) -> str:
    """A definition of 248 KB with many gotos that resemble every step's name and match none."""
    options = ",".join(f"{{condition: '1 == 1', goto: {_LIKE[:20]}x{n}}}" for n in range(count))
    steps = (f"{{type: pass, name: {_LIKE[:20]}{n}}}" for n in range(99))
    return _flow(f"{{type: choice, name: c, choices: [{options}]}}", *steps)


_LIKE = "abababababababababababababababababab"


def _flow(*steps: str) -> str:
    return "version: v1\ntype: flow\nsteps:\n" + "".join(f"  - {step}\n" for step in steps)
