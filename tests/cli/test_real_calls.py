"""`flowserver test` with calls that are real: of programs at URLs, and of Python handlers."""

from pathlib import Path

import pytest

from tests.support.function_server import Call, FunctionError, FunctionServer

ORDER = """\
version: v1
type: flow
steps:
  - type: task
    name: Charge
    resourceArn: acs:fc:::services/pay.prod/functions/charge
    timeoutSeconds: 100
    retry: [{errors: [Busy], intervalSeconds: 1}]
  - type: task
    name: Ask
    resourceArn: acs:fc:::services/office/functions/ask
    pattern: waitForCallback
    inputMappings: [{target: token, source: $context.task.token}, {target: sum, source: $local.sum}]
  - type: task
    name: Tell
    resourceArn: acs:mns:::/queues/orders/messages
    inputMappings: [{target: MessageBody, source: $local.by}]
    serviceParams: {MessageBody: $.MessageBody}
"""
HANDLERS = """\
import json
import prices

calls = 0

def charge(event, context):
    global calls
    calls += 1
    print("charging", context.step_name)
    if context.attempt == 1:
        raise Busy("later")
    return {"sum": json.loads(event)["items"] * prices.EACH, "calls": calls, "from": context.execution_name}

def office(event, context):
    return {"by": "bob", "sum": json.loads(event)["sum"]}

def take(event, context):
    assert json.loads(event) == {"MessageBody": "bob"}

def refuse(event, context):
    raise Busy("full")

class Busy(Exception):
    pass
"""
TESTS = """\
flow: order.yaml
input: {items: 3}
functions: {charge: {real: "handlers.py:charge", after: 10s}}
callbacks: {Ask: {real: "handlers.py:office", after: 2d}}
queues: {orders: {real: "handlers.py:take"}}
tests:
  - name: all is real
    expect:
      outputIncludes: {MessageBodyMD5: "00000000000000000000000000000000"}
      calls: {Charge: 2, orders: [{MessageBody: bob}]}
      took: 172821s
  - name: a mock of the test comes first
    functions: {charge: {return: {sum: 5}}}
    expect: {took: 2d}
  - name: by step
    steps: {Tell: {real: "handlers.py:refuse"}}
    expect: {error: Busy}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "order.yaml").write_text(ORDER)
    (tmp_path / "handlers.py").write_text(HANDLERS)
    (tmp_path / "prices.py").write_text("EACH = 7\n")
    (tmp_path / "order.flowtest.yaml").write_text(TESTS)
    return tmp_path


def test_handlers_answer_functions_callbacks_and_queues(run, folder):
    result = run("test")
    assert result.exit_code == 0, result.stdout
    assert "charging" not in result.stdout
    assert result.stderr.count("charging Charge") == 4


def test_a_handler_is_loaded_anew_by_the_next_run(run, folder):
    (folder / "order.flowtest.yaml").write_text(
        "flow: order.yaml\ninput: {items: 1}\nfunctions: {charge: {real: 'handlers.py:charge'}}\n"
        "steps: {Ask: {return: {}}, Tell: {}}\ncallbacks: {Ask: {succeed: {}}}\n"
        "tests: [{name: a, expect: {calls: {Ask: {count: 1, inputsInclude: [{sum: 7}]}}}}]\n"
    )
    assert run("test").exit_code == 0
    (folder / "prices.py").write_text("EACH = 1000\n")
    assert "$.sum: expected 7, got 1000" in run("test").stdout


@pytest.fixture
def functions():
    def answer(call: Call) -> object:
        return FunctionError("Declined") if call.event == {"items": 0} else {"sum": call.event["items"]}

    with FunctionServer(answer) as running:
        yield running


def test_urls_are_called(run, folder, functions):
    (folder / "order.flowtest.yaml").write_text(
        f"flow: order.yaml\nfunctions: {{charge: {{real: '{functions.url}/any/charge'}}, ask: {{return: {{}}}}}}\n"
        "callbacks: {Ask: {succeed: {by: eve}}}\nqueues: {orders: {}}\ntests:\n"
        "  - {name: paid, input: {items: 2}, expect: {calls: {Ask: {inputsInclude: [{sum: 2}]}}}}\n"
        "  - {name: declined, executionName: e, input: {items: 0}, expect: {error: Declined, took: 0s}}\n"
        "  - {name: closed, functions: {charge: {real: 'http://127.0.0.1:1/'}}, expect: {error: FC.ServerError}}\n"
    )
    result = run("test")
    assert result.exit_code == 0, result.stdout
    assert [call.event for call in functions.calls] == [{"items": 2}, {"items": 0}]
    headers = functions.calls[1].headers
    told = {name: headers[f"x-flowserver-{name}"] for name in ("flow", "execution", "step", "attempt")}
    assert told == {"flow": "order", "execution": "e", "step": "Charge", "attempt": "1"}


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("missing.py:f", "there is no file missing.py"),
        ("handlers.py:f", "handlers.py defines no function f"),
        ("broken.py:f", "broken.py cannot be loaded: SyntaxError: "),
        ("handlers:charge", "`handlers:charge` is nothing that can be called"),
        ("http:///x", "url must name a host"),
        ("http://169.254.169.254/", "url is refused: "),
        ("http://a/${secret:x}", "a test has no secrets to put into a URL"),
    ],
)
def test_what_cannot_be_called_is_a_mistake_of_the_file(run, folder, named, message):
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "order.flowtest.yaml").write_text(
        f"flow: order.yaml\nfunctions: {{charge: {{real: '{named}'}}}}\ntests: [{{name: a}}]\n"
    )
    result = run("test")
    assert result.exit_code == 2
    assert f"order.flowtest.yaml:2:28: error[unusable-callee]: {message}" in result.stdout


def test_a_real_call_has_no_replies_beside_it(run, folder):
    (folder / "order.flowtest.yaml").write_text(
        "flow: order.yaml\nfunctions: {charge: {real: 'handlers.py:charge', return: {}}}\ntests: [{name: a}]\n"
    )
    assert "`return` is not an attribute of a real call" in run("test").stdout
