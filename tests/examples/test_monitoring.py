"""The files for Prometheus and Grafana: they load, name what the server has, and alert when a function breaks."""

import json
import operator
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import promql_parser
import pytest
import yaml
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from flowserver.operations.queues import OutgoingMessage, QueueAttributes
from flowserver.server import Application, create_app
from flowserver.settings import Settings
from tests.api.conftest import client_of
from tests.support.function_server import FunctionError, FunctionServer
from tests.support.metrics import metrics_with_counts

FOLDER = Path(__file__).parents[2] / "examples" / "monitoring"
TASK = """\
version: v1
type: flow
steps:
  - type: task
    name: charge
    resourceArn: acs:fc:::services/shop/functions/charge
"""
OF_PROMETHEUS = {"up": {"job", "instance"}}
COMPARED: Mapping[str, Callable[[float, float], bool]] = {">": operator.gt, "<": operator.lt, "==": operator.eq}


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return json.loads((FOLDER / "dashboard.json").read_text())["panels"]


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in rules())
    yield from (target["expr"] for panel in panels() for target in panel.get("targets", ()))


def parsed(expression: str) -> Any:
    """The expression as Prometheus reads it; Grafana fills in the interval before."""
    return promql_parser.parse(expression.replace("$__rate_interval", "1m"))


def selectors(node: Any) -> Iterator[Any]:
    """The metrics that an expression names, with the labels it wants."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    elif isinstance(node, promql_parser.MatrixSelector):
        yield node.vector_selector
    elif isinstance(node, promql_parser.BinaryExpr):
        yield from (*selectors(node.lhs), *selectors(node.rhs))
    elif isinstance(node, promql_parser.Call):
        for argument in node.args:
            yield from selectors(argument)
    elif isinstance(node, promql_parser.AggregateExpr | promql_parser.ParenExpr):
        yield from selectors(node.expr)
    else:
        assert isinstance(node, promql_parser.NumberLiteral), node


def grouped_by(node: Any) -> set[str]:
    """The labels that an expression's sums keep."""
    if isinstance(node, promql_parser.AggregateExpr):
        return {*(node.modifier.labels if node.modifier else ()), *grouped_by(node.expr)}
    if isinstance(node, promql_parser.BinaryExpr):
        return grouped_by(node.lhs) | grouped_by(node.rhs)
    if isinstance(node, promql_parser.Call):
        return {label for argument in node.args for label in grouped_by(argument)}
    return grouped_by(node.expr) if isinstance(node, promql_parser.ParenExpr) else set()


@pytest.fixture
async def broken(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[httpx.AsyncClient, Application]]:
    """A server with a flow whose function fails, one whose function works, and a queue with messages."""
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0))
    async with app.router.lifespan_context(app), client_of(app) as client:
        monkeypatch.setattr(app.state.engine.disk, "_measure", lambda _: 2**40)  # the machine's own may be full
        with FunctionServer(lambda call: {} if call.event.get("good") else FunctionError("NoMoney")) as functions:
            await client.put("/v1/functions/shop/charge", json={"url": f"{functions.url}/charge"})
            await client.put("/v1/flows/order", json={"definition": TASK})
            for name, given in (("good", {"good": True}), ("bad", {})):
                await client.post("/v1/flows/order/executions?wait=60", json={"name": name, "input": given})
        await app.state.operations.queues.create("q", QueueAttributes())
        await app.state.operations.queues.send("q", [OutgoingMessage(body="x")])
        yield client, app


async def test_every_metric_and_label_exists(broken: tuple[httpx.AsyncClient, Application]) -> None:
    _, app = broken
    labels: dict[str, set[str]] = {name: set(its) for name, its in OF_PROMETHEUS.items()}
    for family in text_string_to_metric_families(await metrics_with_counts(app.state.operations)):
        for sample in family.samples:
            labels.setdefault(sample.name, {"instance", "job"}).update(sample.labels)
    for expression in expressions():
        found = list(selectors(parsed(expression)))
        assert found, expression
        for selector in found:
            assert selector.name in labels, expression
            assert {matcher.name for matcher in selector.matchers.matchers} <= labels[selector.name], expression
        known = set.union(*(labels[selector.name] for selector in found))
        assert grouped_by(parsed(expression)) <= known, expression


def holds(node: Any, samples: list[Metric]) -> bool:
    """Whether a comparison holds for a sample, or either of two. Rates and increases are those since the start."""
    assert isinstance(node, promql_parser.BinaryExpr)
    if str(node.op) == "or":
        return holds(node.lhs, samples) or holds(node.rhs, samples)
    limit = node.rhs.val
    return any(COMPARED[str(node.op)](value, limit) for value in values(node.lhs, samples).values())


def values(node: Any, samples: list[Metric]) -> dict[tuple[tuple[str, str], ...], float]:
    """What an expression gives, by the labels that it keeps."""
    if isinstance(node, promql_parser.BinaryExpr):
        if str(node.op) == "unless":  # there are samples from before: then there were none
            return values(node.lhs, samples)
        assert str(node.op) == "/"
        above, below = values(node.lhs, samples), values(node.rhs, samples)
        return {key: above[key] / below[key] for key in above}
    if isinstance(node, promql_parser.AggregateExpr):
        summed: dict[tuple[tuple[str, str], ...], float] = {}
        for key, value in values(node.expr, samples).items():
            kept = tuple((name, text) for name, text in key if name in node.modifier.labels)
            summed[kept] = summed.get(kept, 0) + value
        return summed
    if isinstance(node, promql_parser.Call):
        return values(node.args[0], samples)
    selector = node.vector_selector if isinstance(node, promql_parser.MatrixSelector) else node
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in samples
        for sample in family.samples
        if sample.name == selector.name and all(_matches(each, sample.labels) for each in selector.matchers.matchers)
    }


def _matches(matcher: Any, labels: Mapping[str, str]) -> bool:
    value, wanted = labels.get(matcher.name, ""), matcher.value
    return {"=": value == wanted, "!=": value != wanted, "=~": value in wanted.split("|")}[_sign_of(matcher)]


def _sign_of(matcher: Any) -> str:
    return {"Equal": "=", "NotEqual": "!=", "Re": "=~"}[str(matcher.op).rpartition(".")[2]]


async def test_a_function_that_breaks_raises_its_alerts_and_no_others(
    broken: tuple[httpx.AsyncClient, Application],
) -> None:
    _, app = broken
    samples = list(text_string_to_metric_families(await metrics_with_counts(app.state.operations)))
    judged = {rule["alert"]: parsed(rule["expr"]) for rule in rules() if "quantile" not in rule["expr"]}
    firing = {name for name, expression in judged.items() if holds(expression, samples)}
    assert firing == {"FailedExecutions", "FunctionFails"}


def test_the_files_are_as_prometheus_and_grafana_want_them() -> None:
    configuration = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())
    assert all((FOLDER / name).exists() for name in configuration["rule_files"])
    assert len({rule["alert"] for rule in rules()}) == len(rules())
    for rule in rules():
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"].keys() == {"summary", "action"}
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
        assert panel["type"] == "row" or [target["refId"] for target in panel["targets"]]


def test_promtool_agrees_on_when_alerts_fire() -> None:
    """Where Prometheus is installed; `holds` counts rates and increases since the start, which hides new series."""
    promtool = shutil.which("promtool")
    if promtool is None:
        return
    done = subprocess.run([promtool, "test", "rules", FOLDER / "alerts_test.yaml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_first_failure_of_a_flow_is_no_increase() -> None:
    """Prometheus sees a series that begins with 1; so the alert also asks for series that were not there before."""
    (rule,) = (each for each in rules() if each["alert"] == "FailedExecutions")
    both = parsed(rule["expr"])
    assert str(both.op) == "or"
    began = both.rhs.lhs.expr
    assert str(began.op) == "unless"
    assert began.rhs.offset is not None
