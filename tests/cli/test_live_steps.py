"""The drawing of `start --wait` and `watch` on a terminal, Ctrl-C there, and lines without a terminal."""

import json
import re

import pytest

from flowserver.client import Client
from tests.support.server import clean_environment
from tests.support.terminal import CTRL_C, Terminal

PACK = """\
version: v1
type: flow
steps:
  - {type: pass, name: reserve}
  - type: foreach
    name: pack
    inputMappings: [{target: items, source: $input.items}]
    iterationMapping: {collection: $.items, item: item}
    steps: [{type: pass, name: label}]
  - type: parallel
    name: both
    branches:
      - steps: [{type: pass, name: left}]
      - steps: [{type: pass, name: right}]
  - {type: wait, name: rest, duration: 1}
  - {type: pass, name: ship}
"""
CALL = """\
version: v1
type: flow
steps:
  - type: task
    name: charge
    resourceArn: acs:fc:::services/no/functions/such
    retry: [{errors: [FnF.ALL], intervalSeconds: 1, maxAttempts: 1}]
"""
WAIT = "version: v1\ntype: flow\nsteps:\n  - {type: wait, name: w, duration: 3600}\n  - {type: pass, name: ship}\n"


@pytest.fixture(scope="module")
def flows(server):
    with Client(server.url) as client:
        for name, text in {"pack": PACK, "call": CALL, "waits": WAIT}.items():
            client.put_flow(name, text)
        yield client


@pytest.fixture
def terminal(server, flows):
    opened = []

    def start(*arguments):
        opened.append(Terminal(arguments, clean_environment() | {"FLOWSERVER_URL": server.url}))
        return opened[-1]

    yield start
    for each in opened:
        each.__exit__(None, None, None)


def test_steps_are_drawn(terminal):
    screen = terminal("start", "pack", "--input", json.dumps({"items": list(range(50))}), "--wait")
    assert screen.read_to_the_end() == 0
    last = screen.text[screen.text.rindex("Succeeded") :]
    assert re.search(r"✔ pack +[\d.]+m?s +━+ +50 of 50", last)
    assert re.search(r"\n  ✔ both.*\n    ✔ left.*\n    ✔ right", last)
    assert re.search(r"✔ ship +[\d.]+m?s", last)
    assert last.rstrip().endswith("{}")


def test_attempts_and_errors_are_drawn(terminal):
    screen = terminal("start", "call", "--wait", "--name", "c1")
    assert screen.read_to_the_end() == 1
    last = screen.text[screen.text.rindex("call/c1  Failed") :]
    assert re.search(r"✘ charge +[\d.]+m?s +attempt 2 of 2, after FC.ServiceNotFound", last)
    assert "call/c1 ended as Failed: FC.ServiceNotFound: service 'no' does not exist" in last


def test_ctrl_c_detaches(terminal, flows):
    screen = terminal("start", "waits", "--name", "w1", "--wait")
    screen.read_until("▸ w ")
    screen.read_until("· ship")  # which is still to come
    screen.press(CTRL_C)
    assert screen.read_to_the_end() == 130
    assert "Detached; waits/w1 continues. Come back: flowserver watch waits/w1" in screen.text
    assert flows.get_execution("waits", "w1").status == "Running"
    back = terminal("watch", "waits/w1")
    back.read_until("▸ w ")
    flows.stop("waits", "w1", error="Cancelled")
    assert back.read_to_the_end() == 1
    assert "waits/w1  Stopped" in back.text


def test_no_colours_on_request(terminal):
    for flags, has_colours in (((), True), (("--no-color",), False)):
        screen = terminal("start", "pack", "--wait", "--input", '{"items": []}', *flags)
        assert screen.read_to_the_end() == 0
        assert "✔ ship" in screen.text
        assert bool(screen.colours) is has_colours


@pytest.mark.usefixtures("flows")
def test_lines_without_a_terminal(run, server):
    said = run("start", "pack", "--input", '{"items": [1, 2]}', "--wait", "--server", server.url).stderr.splitlines()
    assert re.fullmatch(r"(pack/\w+) runs\. Come back: flowserver watch \1", said[0])
    assert [re.sub(r"  [\d.]+m?s", "", line) for line in said[1:]] == [
        "▸ reserve", "✔ reserve", "▸ pack", "✔ pack  2 of 2", "▸ both", "  ▸ left", "  ✔ left", "  ▸ right",
        "  ✔ right", "✔ both", "▸ rest", "✔ rest", "▸ ship", "✔ ship",
    ]  # fmt: skip
    failed = run("start", "call", "--wait", "--server", server.url)
    assert failed.exit_code == 1
    lines = [re.sub(r"  [\d.]+m?s", "", line) for line in failed.stderr.splitlines()]
    assert lines[2:4] == [
        "▸ charge  attempt 1 of 2 (FC.ServiceNotFound)",
        "✘ charge  attempt 2 of 2, after FC.ServiceNotFound  FC.ServiceNotFound: service 'no' does not exist",
    ]
