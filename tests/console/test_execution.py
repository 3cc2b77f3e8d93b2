"""The page of one execution: reading a failure, following a run, its past, and what is done from it."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.console.browser.complaints import Complaints
from tests.console.browser.settled import FRAMES
from tests.support.function_server import Call, FunctionError, FunctionServer
from tests.support.server import ServerProcess

ORDER = """\
version: v1
type: flow
steps:
  - type: task
    name: charge
    resourceArn: acs:fc:::services/shop/functions/charge
    retry: [{errors: [Busy], intervalSeconds: 1, maxAttempts: 2, multiplier: 1}]
  - type: foreach
    name: pack
    iterationMapping: {collection: $.items, item: item}
    inputMappings: [{target: items, source: $input.items}]
    steps:
      - type: task
        name: label
        resourceArn: acs:fc:::services/shop/functions/label
        inputMappings: [{target: item, source: $input.item}]
  - {type: pass, name: ship}
"""
ASK = """\
version: v1
type: flow
steps:
  - {type: pass, name: prepare}
  - type: task
    name: approve
    resourceArn: acs:fc:::services/shop/functions/ask
    pattern: waitForCallback
    inputMappings: [{target: token, source: $context.task.token}]
    outputMappings: [{target: approval, source: $local}]
  - {type: pass, name: done}
"""
EACH = """\
version: v1
type: flow
steps:
  - type: foreach
    name: each
    iterationMapping: {collection: $.items, item: item}
    inputMappings: [{target: items, source: $input.items}]
    steps: [{type: pass, name: a}, {type: pass, name: b}]
  - {type: pass, name: last}
"""
PAUSE_MS = 5_000
LARGE = 90071992547409931234
HOSTILE = {
    "<script>alert(1)</script>": "<img src=x onerror=alert(1)>",
    "digits": LARGE,
    "rtl": "txt.\u202eexe",
    "emoji": "\U0001f389 \u05e9\u05dc\u05d5\u05dd",
    "long": "abc d" * 40_000,
}


def answer(call: Call) -> Any:
    """A card service that is busy at first, and a printer that is offline for one label."""
    if call.function == "shop/charge" and call.headers["x-flowserver-attempt"] == "1":
        return FunctionError("Busy", "the card service is busy")
    if call.function == "shop/label" and call.event["item"] == {"sku": "S2"}:
        return FunctionError("Offline", "printer offline")
    return call.event


@pytest.fixture(scope="module")
def functions(server: ServerProcess) -> Iterator[FunctionServer]:
    with FunctionServer(answer) as running:
        for name in ("charge", "label", "ask"):
            running.register(server.url, f"shop/{name}")
        yield running


def start(rest: httpx.Client, flow: str, definition: str, given: object, *, wait: int = 60) -> None:
    rest.put(f"/v1/flows/{flow}", json={"definition": definition}).raise_for_status()
    body = {"name": "run", "input": given}
    started = rest.post(f"/v1/flows/{flow}/executions?wait={wait}", json=body)
    assert started.is_success, started.text


def refuse(route: Route) -> None:
    route.fulfill(status=503, json={"code": "Busy", "detail": "The server is busy."})


def test_a_failure_is_read_to_its_cause_by_keyboard_and_redriven_with_another_input(
    page: Page, rest: httpx.Client, functions: FunctionServer, complaints: Complaints, unique: str
) -> None:
    complaints.allow("status of 503")
    start(rest, unique, ORDER, {"items": [{"sku": f"S{index}"} for index in range(4)], "orderId": LARGE})
    page.goto(f"/executions/{unique}/run")
    expect(page.get_by_text("Failed").first).to_be_visible()
    page.keyboard.press("f")
    inspector = page.get_by_role("complementary", name="Step pack[2].label")
    expect(inspector.get_by_role("heading", name="pack[2].label")).to_be_focused()
    expect(inspector.get_by_role("group", name="Error").get_by_text("printer offline").first).to_be_visible()
    expect(inspector.get_by_role("treeitem", name='sku: "S2"')).to_be_visible()
    expect(page).to_have_url(f"{page.url.split('?')[0]}?step=pack%5B2%5D.label")
    page.keyboard.press("Escape")
    expect(inspector).to_have_count(0)
    page.go_back()
    page.go_forward()

    page.get_by_role("group", name="Steps of the flow").get_by_role("button", name="charge").click()
    charge = page.get_by_role("complementary", name="Step charge")
    attempts = charge.get_by_role("region", name="Attempts")
    expect(attempts.get_by_role("listitem")).to_have_count(2)
    expect(attempts.get_by_text("Busy").first).to_be_visible()
    expect(charge.get_by_role("treeitem", name=f"orderId: {LARGE}")).to_be_visible()
    charge.get_by_role("button", name="Definition line 4").click()
    expect(page.locator("[aria-current=location]")).to_have_text("- type: task")

    page.keyboard.press("R")
    dialog = page.get_by_role("dialog", name=f"Redrive {unique}/run")
    expect(dialog.get_by_text("pack[2].label", exact=True)).to_be_visible()
    definition, edit = dialog.get_by_label("Definition"), dialog.get_by_label("Edit the input of the step")
    page.route("**/events?*type=StepStarted*", refuse, times=1)
    edit.click()
    expect(dialog.get_by_role("alert")).to_contain_text("The server is busy.")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/events?*type=StepStarted*", hold, times=1)
    with page.expect_request("**/events?*type=StepStarted*"):
        edit.click()
    definition.select_option("current")
    held[0].continue_()
    expect(edit).to_be_checked()
    expect(definition).to_have_value("current")
    text = dialog.get_by_role("textbox")
    expect(text).to_have_value('{\n  "item": {\n    "sku": "S2"\n  }\n}')
    text.fill('{"item": ')
    expect(dialog.get_by_role("alert")).to_contain_text("not JSON")
    text.fill(f'{{"item": {{"sku": {LARGE}}}}}')
    dialog.get_by_role("button", name="Redrive").click()
    expect(page.get_by_text("Succeeded").first).to_be_visible()
    expect(page.get_by_text("redriven once")).to_be_visible()
    assert {"item": {"sku": LARGE}} in [call.event for call in functions.calls]


def test_a_run_is_stopped_redriven_followed_and_reported_and_its_past_looked_at(
    page: Page, rest: httpx.Client, functions: FunctionServer, unique: str
) -> None:
    start(rest, unique, ASK, {}, wait=0)
    page.goto(f"/executions/{unique}/run?step=approve")
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_label("Error").fill("Cancelled")
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped").first).to_be_visible()
    page.get_by_role("button", name="Redrive").click()
    page.get_by_role("dialog").get_by_text("1 step runs again").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Redrive").click()
    graph = page.get_by_role("group", name="Steps of the flow")
    inspector = page.get_by_role("complementary", name="Step approve")
    expect(inspector.get_by_text("Waiting for a report")).to_be_visible()
    expect(graph.get_by_role("button", name="done, Not reached")).to_be_visible()
    expect(page.get_by_text("at ").get_by_role("button", name="approve")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with page.expect_request(re.compile("/executions/run[?].*documents=false")):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    inspector.get_by_role("button", name="Report success").click()
    dialog = page.get_by_role("dialog", name="Report success of approve")
    dialog.get_by_role("textbox").fill("[1]")
    dialog.get_by_role("button", name="Report").click()
    expect(dialog.get_by_role("alert")).to_contain_text("must be a JSON object")
    dialog.get_by_role("textbox").fill(f'{{"by": "Ann", "number": {LARGE}}}')
    dialog.get_by_role("button", name="Report").click()
    expect(dialog).to_have_count(0)
    expect(inspector.get_by_text("Succeeded").first).to_be_visible()
    expect(graph.get_by_role("button", name="done, Succeeded")).to_be_visible()
    assert not [url for url in asked if "/steps" in url]  # the stream says what has changed
    assert rest.get(f"/v1/flows/{unique}/executions/run?wait=60").json()["output"]["approval"]["number"] == LARGE

    views = page.get_by_role("region", name="Execution", exact=True)
    views.get_by_role("tab", name="Output").click()
    expect(views.get_by_role("treeitem", name='by: "Ann"')).to_be_visible()
    views.get_by_role("tab", name="Graph").click()

    events = page.get_by_role("listbox", name="Events")
    events.get_by_role("option").filter(has_text="TaskSubmitted").last.click()
    expect(page.get_by_text("Paused by you")).to_be_visible()
    expect(inspector.get_by_text("Submitted").first).to_be_visible()
    inspector.get_by_text("Event 17 TaskSubmitted").click()
    expect(inspector.get_by_role("tree", name="Event 17")).to_contain_text("requestId")
    expect(inspector.get_by_role("button", name="Report success")).to_have_count(0)
    expect(graph.get_by_role("button", name="done, Not reached")).to_be_visible()
    events.press("Home")
    events.press("k")
    expect(page).to_have_url(f"{page.url.split('?')[0]}?step=approve&event=16")
    page.keyboard.press("l")
    expect(page.get_by_text("Paused by you")).to_have_count(0)
    expect(inspector.get_by_text("Succeeded").first).to_be_visible()


def test_a_long_history_is_searched_and_scrolled(
    page: Page, rest: httpx.Client, complaints: Complaints, unique: str
) -> None:
    complaints.allow("status of 503")
    start(rest, unique, EACH, {"items": list(range(2_000))})
    count = rest.get(f"/v1/flows/{unique}/executions/run/events?order=desc&limit=1").json()["events"][0]["eventId"]
    assert count > 20_000
    page.goto(f"/executions/{unique}/run")
    events = page.get_by_role("listbox", name="Events")
    expect(events.get_by_role("option").filter(has_text="ExecutionSucceeded")).to_be_visible()
    events.press("Home")
    expect(events.get_by_role("option").filter(has_text="ExecutionStarted")).to_be_visible()
    assert events.get_by_role("option").count() < 100

    def count_partly(route: Route) -> None:
        steps = rest.get(f"/v1/flows/{unique}/executions/run/steps?at=100").json()
        route.fulfill(json=steps | {"complete": False})

    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.goto("about:blank")  # a page that still counts would take the answers that are meant for the next
    page.route("**/steps?*", hold, times=1)
    page.route("**/steps?*", count_partly, times=1)
    with page.expect_request("**/steps?within=0.4*"):
        page.goto(f"/executions/{unique}/run")
    counted = page.get_by_text(f"steps counted up to event 100 of {count:,}")
    each = page.get_by_role("group", name="Steps of the flow").get_by_role("button", name=re.compile("each, "))
    expect(counted).to_be_visible()
    expect(each).to_have_accessible_name(re.compile("Running"))
    held[0].continue_()
    expect(counted).to_have_count(0)
    expect(each).to_have_accessible_name(re.compile("Succeeded"))
    page.goto(f"/executions/{unique}/run?event=999999999")
    expect(page).to_have_url(f"/executions/{unique}/run")
    expect(page.get_by_text("Paused by you")).to_have_count(0)
    page.goto("about:blank")
    page.route("**/events?limit=1&paths=true", refuse, times=1)
    page.clock.install()
    with page.expect_response(lambda found: found.status == 503):
        page.goto(f"/executions/{unique}/run?event=10000")
    chosen = events.get_by_role("option", selected=True)
    expect(chosen).to_contain_text("10000")
    while not chosen.filter(has_text="each[").is_visible():  # their paths are asked for again after a while
        page.clock.run_for(PAUSE_MS)
    events.press("j")
    expect(events.get_by_role("option", selected=True)).to_contain_text("10001")
    page.goto(f"/executions/{unique}/run?events=each%5B1234%5D")
    expect(events.get_by_role("option")).to_have_count(10)
    page.get_by_role("searchbox", name="Search the events").fill("stepexited")
    expect(events.get_by_role("option")).to_have_count(2)
    events.get_by_role("option").first.dblclick()
    expect(page.get_by_role("complementary", name="Step each[1234].a")).to_be_visible()


def test_what_could_not_be_read_is_asked_for_again_and_not_too_often(
    page: Page, rest: httpx.Client, complaints: Complaints, unique: str
) -> None:
    complaints.allow("status of 503")
    start(rest, unique, EACH, {"items": [1, 2]})
    refused: list[str] = []

    def busy(route: Route) -> None:
        refused.append(route.request.url)
        refuse(route)

    page.clock.install()
    page.route(re.compile(r"/(events[?](after|before)=|iterations[?]|steps[?]at=)"), busy)
    last = rest.get(f"/v1/flows/{unique}/executions/run/events?order=desc&limit=1").json()["events"][0]["eventId"]
    page.goto(f"/executions/{unique}/run?step=each%5B0%5D.a&event={last - 1}")
    events = page.get_by_role("region", name="Events")
    inspector = page.get_by_role("complementary", name="Step each[0].a")
    for part in (events, inspector):
        expect(part.get_by_role("alert")).to_contain_text("The server is busy.")
    page.evaluate(FRAMES)
    elapsed_ms = page.evaluate("performance.now()")
    assert len(refused) <= 8 + elapsed_ms / 500, refused
    page.unroute_all()
    page.get_by_role("region", name="Timeline").get_by_role("button", name="Try again").click()
    page.clock.run_for(PAUSE_MS)
    chosen = events.get_by_role("listbox").get_by_role("option", selected=True)
    expect(chosen).to_contain_text(str(last - 1))
    expect(inspector.get_by_text("Succeeded").first).to_be_visible()
    expect(page.get_by_text("The server is busy.")).to_have_count(0)


def test_what_users_wrote_is_text(page: Page, rest: httpx.Client, unique: str) -> None:
    fails = f"version: v1\ntype: flow\nsteps: [{{type: fail, name: f, error: '<b>E</b>', cause: '{'<i>c</i>'}'}}]\n"
    start(rest, unique, fails, HOSTILE)
    page.goto(f"/executions/{unique}/run?step=f")
    error = page.get_by_role("group", name="Error")
    expect(error.get_by_text("<b>E</b>")).to_be_visible()
    expect(error.get_by_text("<i>c</i>")).to_be_visible()
    page.get_by_role("tab", name="Input").first.click()
    tree = page.get_by_role("tabpanel", name="input").first.get_by_role("tree")
    expect(tree.get_by_role("treeitem", name="<script>alert(1)</script>")).to_contain_text(
        "<img src=x onerror=alert(1)>"
    )
    expect(tree.get_by_role("treeitem", name="digits")).to_contain_text(str(LARGE))
    expect(tree.get_by_role("treeitem", name="rtl")).to_contain_text("txt.\\u202eexe")
    expect(tree.get_by_role("treeitem", name="long").get_by_role("button", name="show")).to_contain_text(
        "20.0 k of 198.0 k"
    )
    tree.get_by_role("treeitem", name="emoji").press("p")
    expect(page.get_by_text("Copied $input.emoji")).to_be_visible()
    assert page.evaluate("document.querySelectorAll('aside :is(i, b), main :is(img, script)').length") == 0


JSON_ROUND_TRIPS = """async (given) => {
  const url = new URL("console/exact-json.js", document.baseURI).href;
  const { parseJson, stringifyJson } = await import(url);
  const read = () => given.map((text) => stringifyJson(parseJson(text)));
  const native = JSON.parse;
  const withSource = read();
  JSON.parse = (text, reviver) => native(text, reviver && ((key, value) => reviver(key, value)));
  const without = read();
  JSON.parse = native;
  return [withSource, without];
}"""

CAUSE_VALUE = """async (cause) => {
  const { causeValue } = await import(new URL("console/parts/json-values.js", document.baseURI).href);
  return String(causeValue(cause).order);
}"""


def test_integers_keep_their_digits_in_browsers_that_hide_the_source_of_numbers(page: Page) -> None:
    given = [
        f'{{"a":{LARGE},"b":[-{LARGE},1.5,9007199254740991]}}',
        f'["{LARGE}","\\\\\\"{LARGE}",{LARGE}]',
        '"int-0.5:12345678901234567890"',
        f"[0.30000000000000004,-0.12345678901234568,1e-7,1.2345678901234567e+30,-{LARGE}]",
    ]
    page.goto("/flows")
    assert page.evaluate(JSON_ROUND_TRIPS, given) == [given, given]
    assert page.evaluate(CAUSE_VALUE, f'{{"order":{LARGE}}}') == str(LARGE)


STREAM_AGAIN = """async (answers) => {
  const { stream } = await import(new URL("console/store/stream.js", document.baseURI).href);
  const [fetches, waits, native] = [globalThis.fetch, [], globalThis.setTimeout];
  const headers = { "Content-Type": "text/event-stream" };
  const asked = [];
  globalThis.setTimeout = (run, ms) => (ms >= 250 && waits.push(ms), native(run, 0));
  globalThis.fetch = async (url, options) => {
    if (!url.endsWith("/v1/x")) return fetches(url, options); // what the page itself asks for
    asked.push(options.headers["Last-Event-ID"] ?? null);
    const answer = answers.shift();
    if (answer === undefined) return new Response(null, { status: 204 });
    return new Response(answer, { headers: answer.startsWith("<") ? { "Content-Type": "text/html" } : headers });
  };
  const heard = [];
  await new Promise((onEnd) => stream("v1/x", {}, (batch) => heard.push(...batch), { onEnd }));
  Object.assign(globalThis, { fetch: fetches, setTimeout: native });
  return { heard, waits, asked };
}"""


def test_a_stream_that_brings_nothing_is_asked_for_more_and_more_rarely_and_an_unreadable_event_again(
    page: Page,
) -> None:
    page.goto("/flows/there/is/none")
    page_of_proxy = "<html>who are you?</html>"
    answers = [page_of_proxy, page_of_proxy, "", "id: 1\ndata: 1\n\nid: 2\ndata: {\n\n", "id: 2\ndata: 2\n\n"]
    found = page.evaluate(STREAM_AGAIN, answers)
    assert found == {"heard": [1, 2], "waits": [500, 1000, 2000, 250, 250], "asked": [None] * 4 + ["1", "2"]}


def test_an_event_that_cannot_be_read_twice_ends_a_stream(page: Page) -> None:
    page.goto("/flows/there/is/none")
    found = page.evaluate(
        STREAM_AGAIN, ["id: 1\ndata: 1\n\nid: 2\ndata: {\n\n", "id: 2\ndata: {\n\n", "id: 2\ndata: 2\n\n"]
    )
    assert found == {"heard": [1], "waits": [250], "asked": [None, "1"]}


LOADS = """async () => {
  const { oneAtATime } = await import(new URL("console/pages/execution/inspected.js", document.baseURI).href);
  const [begun, done] = [[], []];
  const next = () => new Promise((resolve) => begun.push(resolve));
  const loads = oneAtATime(() => (begun.shift()?.(), new Promise((resolve) => done.push(resolve))));
  const first = next();
  loads.ask(0);
  await first;
  for (let times = 0; times < 3; times += 1) loads.ask(0);
  await new Promise((resolve) => setTimeout(resolve, 5));
  const meanwhile = done.length;
  const second = next();
  done[0]();
  await second;
  loads.ask(0);
  loads.end();
  done[1]();
  await new Promise((resolve) => setTimeout(resolve, 5));
  return [meanwhile, done.length];
}"""


def test_the_inspector_reads_one_answer_at_a_time(page: Page) -> None:
    page.goto("/flows")
    assert page.evaluate(LOADS) == [1, 2]


OVERTAKEN = """async () => {
  const module = (path) => import(new URL(`console/${path}`, document.baseURI).href);
  const { Run } = await module("pages/execution/run.js");
  const { useQuery } = await module("store/queries.js");
  const { h, render } = await module("vendor/preact.js");
  const native = globalThis.fetch;
  const held = [];
  let wake = () => {};
  globalThis.fetch = (url, options) => {
    if (!url.includes("/overtaken")) return native(url, options);
    return new Promise((resolve) => (held.push((data) => resolve(Response.json(data))), wake()));
  };
  const asked = (count) => new Promise((resolve) => (wake = () => held.length >= count && resolve())).then(() => held);
  const asking = async (count, ask) => {
    held.length = 0;
    const come = asked(count);
    ask();
    return [...(await come)];
  };
  const run = new Run("overtaken", "run");
  const [page] = await asking(1, () => (void run.readSummary(), void run.readSummary()));
  const summary = { steps: [], nextToken: null, lastEventId: 1, status: "Succeeded" };
  (await asking(1, () => page(summary)))[0](summary);
  const looks = [];
  const [first, second] = await asking(2, () => looks.push(run.look(), run.look()));
  second({ status: "Succeeded" });
  await looks[1];
  first({ status: "Running" });
  await looks[0];
  run.close();
  let shown = null;
  const Shown = () => (shown = useQuery("v1/overtaken"), null);
  const [before] = await asking(1, () => render(h(Shown), document.createElement("div")));
  const [after] = await asking(1, () => void shown.reload());
  before({ number: 1 });
  after({ number: 2 });
  while (shown.loading) await new Promise(requestAnimationFrame);
  globalThis.fetch = native;
  return [run.execution.value.status, shown.data.number];
}"""


def test_what_was_asked_before_a_change_does_not_count_after_it(page: Page) -> None:
    page.goto("/flows")
    assert page.evaluate(OVERTAKEN) == ["Succeeded", 2]


MEANWHILE = """async (isNewestFirst) => {
  const { SomeEvents } = await import(new URL("console/pages/execution/event-pages.js", document.baseURI).href);
  const native = globalThis.fetch;
  let answer = null;
  globalThis.fetch = (url, options) => {
    if (!url.includes("/held")) return native(url, options);
    return new Promise((resolve) => (answer = (data) => resolve(Response.json(data))));
  };
  const event = (eventId) => ({ eventId, type: "StepEntered", stepName: "a", stepPath: "a", detail: {} });
  const events = new SomeEvents("v1/held", isNewestFirst, { step: "a" });
  events.add([event(2), event(3)]);
  answer({ events: (isNewestFirst ? [2, 1] : [1, 2]).map(event), nextToken: null });
  while (events.loading) await new Promise(requestAnimationFrame);
  globalThis.fetch = native;
  return events.rows.map((row) => row.id);
}"""


def test_events_that_come_while_a_page_of_events_is_read_are_shown_once(page: Page) -> None:
    page.goto("/flows")
    assert page.evaluate(MEANWHILE, False) == [1, 2, 3]
    assert page.evaluate(MEANWHILE, True) == [3, 2, 1]


SUMMARIES = """async () => {
  const { Run } = await import(new URL("console/pages/execution/run.js", document.baseURI).href);
  const native = globalThis.fetch;
  const step = (path, last) => ({ path, last, running: 0 });
  const status = "Succeeded";
  const summary = (lastEventId, complete, ...steps) => ({ steps, lastEventId, complete, nextToken: null, status });
  const until = async (isSo) => {
    for (let left = 1_000; left && !isSo(); left -= 1) await new Promise(requestAnimationFrame);
  };
  const answers = [];
  let whenAsked = () => {};
  globalThis.fetch = async (url, options) => {
    if (!url.includes("/counted")) return native(url, options);
    if (!url.includes("/steps")) return Response.json({ status });
    whenAsked();
    const data = answers.shift();
    return data ? Response.json(data) : new Response("", { status: 503 });
  };
  const run = new Run("counted", "run");
  answers.push(summary(3, false, step("a", "3")));
  await run.readSummary();
  answers.push(summary(5, true, step("a", "5"), step("b", "5")));
  await run.look();
  await until(() => run.now.value.complete);
  const change = (lastEventId, steps) => run.change({ lastEventId, status, steps });
  whenAsked = () => change(7, [step("b", "7")]);
  answers.push(summary(6, true, step("a", "6"), step("b", "6")));
  change(6, null);
  await until(() => run.now.value.steps[0].last === "6");
  run.close();
  globalThis.fetch = native;
  return [run.now.value.lastEventId, ...run.now.value.steps.map((each) => each.path + each.last)];
}"""


def test_a_count_goes_on_after_an_error_and_counts_when_it_is_overtaken(page: Page) -> None:
    """A summary is read while the stream goes on: what only the summary says counts, and what came later, too."""
    page.goto("/flows")
    assert page.evaluate(SUMMARIES) == [7, "a6", "b7"]
