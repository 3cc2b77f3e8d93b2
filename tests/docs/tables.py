"""The generated parts of the documentation: each is Markdown made from a table that the server itself uses."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Final

import yaml
from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry

from flowserver.analysis.rules import RULES
from flowserver.analysis.transient_errors import CALL_ERRORS, OTHER_ERRORS
from flowserver.api.fc.router import ROUTES as FC_ROUTES
from flowserver.api.mns.router import CALLS as MNS_CALLS
from flowserver.api.rest.auth import Unauthenticated
from flowserver.api.rest.needs import NEEDS as REST_NEEDS
from flowserver.api.rest.problems import MethodNotAllowed, PathNotFound
from flowserver.api.rest.router import ROUTERS
from flowserver.api.rpc.actions import ACTIONS
from flowserver.api.rpc.needs import NEEDS as RPC_NEEDS
from flowserver.api.rpc.router import FIELDS_MAX
from flowserver.base import errors
from flowserver.base.errors import FlowServerError
from flowserver.base.json_values import DEPTH_MAX as JSON_DEPTH_MAX
from flowserver.base.limits import Limits
from flowserver.base.task_tokens import TOKEN_CHARACTERS_MAX
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.options import FLAGGED, flag_of, variable_of
from flowserver.client import results, server_results
from flowserver.editing.rule_pages import rule_page
from flowserver.engine.functions.function_metrics import FunctionMetrics
from flowserver.expressions.condition_parser import CONDITION_CHARACTERS_MAX, NESTING_MAX
from flowserver.expressions.conditions import CONDITION_VALUES_MAX
from flowserver.expressions.paths import PATH_CHARACTERS_MAX
from flowserver.flowtests.fault_names import FAULTS
from flowserver.flowtests.fields import KINDS as FLOW_TEST_KINDS
from flowserver.flowtests.properties import FACTS
from flowserver.flowtests.property_names import OF_EVERY_FLOW
from flowserver.invokers.connections import CONNECT_SECONDS
from flowserver.invokers.endpoint_rules import TIMEOUT_SECONDS_MAX
from flowserver.invokers.error_names import ErrorName
from flowserver.invokers.forbidden_addresses import PRIVATE_NETWORKS, REFUSED_NETWORKS
from flowserver.invokers.function_health import FunctionHealth
from flowserver.language.diagnostics import DIAGNOSTICS, LENIENT
from flowserver.language.fields import KINDS, STEPS, Field, ObjectKind
from flowserver.language.scalars import NUMBER_CHARACTERS_MAX
from flowserver.machine.invocations.states import ENDED, InvocationStatus
from flowserver.machine.invocations.states import TRANSITIONS as INVOCATION_TRANSITIONS
from flowserver.machine.state import Status
from flowserver.machine.transitions import STATUS_TRANSITIONS, TRANSITIONS
from flowserver.metrics.process_metrics import GAUGES, Metrics
from flowserver.metrics.request_counts import RequestMetrics
from flowserver.operations.audited import AUDITED
from flowserver.operations.flows import DESCRIPTION_CHARACTERS_MAX
from flowserver.operations.functions import TIMEOUT_SECONDS_DEFAULT
from flowserver.operations.permissions import PERMISSIONS, ROLES
from flowserver.operations.redrives import ExecutionEndReported
from flowserver.operations.secrets import SecretInUse, SecretNotExists, SecretsKeyMissing
from flowserver.settings import Settings
from flowserver.store.integrity.disk_reserve import DiskAlmostFull
from tests.docs.commands import commands, common_options

APIS: Final = ("REST", "RPC", "FC", "MNS")
"""The columns of the table of needs: FC is Function Compute's API, MNS the message service's."""

WARNING: Final = "Warning: "
"""The first words of a finding's meaning if the finding does not refuse the definition."""

SECRET_ERRORS: Final = (SecretNotExists, SecretInUse, SecretsKeyMissing)

SHARED_BY_MIN: Final = 6
"""An attribute that this many of the eight kinds of steps have is in the table of shared attributes."""


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def exit_codes() -> str:
    """The exit codes of all commands."""
    rows = ((f"`{code:d}`", code.name.lower(), code.meaning) for code in ExitCode)
    return table(("exit code", "name", "meaning"), rows)


def limits() -> str:
    """Every limit, in both profiles."""
    rows = (
        (f"`{row.name}`", f"{row.default:,}", f"{about['cloud']:,}", about["unit"], about["reason"], about["error"])
        for row in fields(Limits)
        for about in [row.metadata]
    )
    return table(("name", "default", "cloud", "unit", "what for", "when it is passed"), rows)


def fixed_limits() -> str:
    """Limits that are the same in every profile."""
    rows = (
        ("nesting of JSON documents", f"{JSON_DEPTH_MAX:,} levels"),
        ("a number in a definition", f"{NUMBER_CHARACTERS_MAX:,} characters"),
        ("a path in a definition", f"{PATH_CHARACTERS_MAX:,} characters"),
        ("a condition in a definition", f"{CONDITION_CHARACTERS_MAX:,} characters"),
        ("parentheses and prefixes in a condition", f"{NESTING_MAX:,} levels"),
        ("what the conditions of a choice step compare, all together", f"{CONDITION_VALUES_MAX:,} values"),
        ("a flow's description", f"{DESCRIPTION_CHARACTERS_MAX:,} characters"),
        ("parameters of an RPC request", f"{FIELDS_MAX:,}"),
        (
            "a function's own time-out",
            f"1 to {TIMEOUT_SECONDS_MAX:,} seconds, {TIMEOUT_SECONDS_DEFAULT:,} if not given",
        ),
        ("making a connection to a function", f"{CONNECT_SECONDS:,} seconds"),
        ("a task token", f"{TOKEN_CHARACTERS_MAX:,} characters"),
    )
    return table(("what", "bound"), rows)


def settings() -> str:
    """Every setting of the server."""
    rows = (
        (_flag(name), f"`{variable_of(name)}`", _default(name), field.description or "")
        for name, field in Settings.model_fields.items()
    )
    return table(("flag of `serve`", "variable", "default", "meaning"), rows)


def _flag(name: str) -> str:
    return f"`{flag_of(name)}`" if name in FLAGGED else "none"


def _default(name: str) -> str:
    default = Settings.model_fields[name].get_default(call_default_factory=True)
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return "none" if default in (None, [], {}) else f"`{default}`"


def diagnostics() -> str:
    """Every finding, whether it refuses the definition, and what it means."""
    rows = ((f"`{id}`", _severity(id, text), text.removeprefix(WARNING)) for id, text in DIAGNOSTICS.items())
    return table(("id", "severity", "meaning"), rows)


def _severity(id: str, meaning: str) -> str:
    if id in LENIENT:
        return "error; warning with `--lenient`"
    return "warning" if meaning.startswith(WARNING) else "error"


def rules() -> str:
    """Every rule of `flowserver prove`, and why its findings are true."""
    rows = ((f"[`{name}`](#{name})", str(rule.severity), rule.finds, rule.why) for name, rule in RULES.items())
    return table(("rule", "severity", "finds", "why it is true"), rows)


def rules_in_full() -> str:
    """The page of every rule; `rule` marks definitions that have findings on purpose."""
    return "\n\n".join(f"### {name}\n\n{rule_page(name).markdown('rule').rstrip()}" for name in RULES)


def api_errors() -> str:
    """The errors of every API of the server."""
    raised = (one for one in vars(errors).values() if inspect.isclass(one) and issubclass(one, FlowServerError))
    return _errors([*(one for one in raised if one is not FlowServerError), DiskAlmostFull])


def rest_errors() -> str:
    """The errors that only REST has."""
    return _errors((Unauthenticated, PathNotFound, MethodNotAllowed, ExecutionEndReported, *SECRET_ERRORS))


def _errors(raised: Iterable[type[FlowServerError]]) -> str:
    rows = ((str(one.status), f"`{one.code}`", (one.__doc__ or "").partition("\n")[0]) for one in raised)
    return table(("status", "code", "meaning"), rows)


def call_errors() -> str:
    """The names of the errors that a function's call can end with."""
    return table(("name", "when"), ((f"`{row}`", row.when) for row in ErrorName))


def transient_errors() -> str:
    """The errors after which a call may succeed when it is made again."""
    rows = [(f"`{name}`", each.cause, "maybe" if each.may_have_run else "no") for name, each in CALL_ERRORS.items()]
    rows += [(f"`{name}`", cause, "no") for name, cause in OTHER_ERRORS.items()]
    return table(("name", "cause", "did the callee run?"), rows)


def refused_addresses() -> str:
    """Addresses at which no function may be."""
    return table(("network", "what it is"), ((f"`{network}`", reason) for network, reason in REFUSED_NETWORKS))


def private_addresses() -> str:
    """Addresses that a setting refuses besides."""
    return table(("network", "what it is"), ((f"`{network}`", reason) for network, reason in PRIVATE_NETWORKS))


def invocation_states() -> str:
    """The transitions of an asynchronous invocation, as a diagram; `[*]` is where they begin and end."""
    return _status_diagram(INVOCATION_TRANSITIONS, [status for status in InvocationStatus if status in ENDED])


def execution_statuses() -> str:
    """The statuses of an execution, as a diagram."""
    return _status_diagram(STATUS_TRANSITIONS, [status for status in Status if status is not Status.RUNNING])


def _status_diagram(transitions: Iterable[tuple[str | None, str, str]], ends: Iterable[str]) -> str:
    """Each transition is (source, target, when), each end a status that no transition leaves."""
    lines = [f"{source or '[*]'} --> {target}: {when}" for source, target, when in transitions]
    return _state_diagram([*lines, *(f"{status} --> [*]" for status in ends)])


def waits() -> str:
    """The successive waits of a scope, as a diagram; an arrow without words is the turn's own."""
    messages: dict[tuple[str, str], list[str]] = {}
    for each in TRANSITIONS:
        for target in each.targets:
            names = messages.setdefault((each.source or "[*]", target or "[*]"), [])
            names.extend([] if each.message is None else [each.message.__name__])
    return _state_diagram(
        f"{source} --> {target}" + (f": {', '.join(names)}" if names else "")
        for (source, target), names in messages.items()
    )


def messages_by_wait() -> str:
    """The effect of each message on a scope, by the scope's wait."""
    rows = (
        (f"`{each.source}`", f"`{each.message.__name__}`", each.when, ", ".join(f"`{each}`" for each in each.targets))
        for each in TRANSITIONS
        if each.message is not None
    )
    return table(("the list waits for", "message", "what happens", "then it waits for"), rows)


def _state_diagram(lines: Iterable[str]) -> str:
    return "\n".join(["```mermaid", "stateDiagram-v2", *(f"    {line}" for line in lines), "```"])


def metrics() -> str:
    """The server's metrics, by their names in Prometheus."""
    known = Metrics(Limits())
    known.text(dict.fromkeys(GAUGES, 0))
    known.registry.register(RequestMetrics())
    return _metrics(known.registry)


def named_metrics() -> str:
    """The metrics that show names of flows, steps, functions and queues."""
    known = Metrics(Limits())
    known.named.register(FunctionMetrics(FunctionHealth(Limits())))
    return _metrics(known.named)


def _metrics(registry: CollectorRegistry) -> str:
    suffix = {"counter": "_total", "info": "_info"}
    rows = (
        (f"`{family.name}{suffix.get(family.type, '')}`", family.type, family.documentation)
        for family in registry.collect()
    )
    return table(("metric", "type", "meaning"), rows)


def actions() -> str:
    """The actions of the RPC API."""
    return ", ".join(f"`{action}`" for action in ACTIONS) + "."


def routes() -> str:
    """The operations of REST."""
    found = (route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute))
    rows = ((", ".join(sorted(route.methods)), f"`{route.path}`", str(route.summary)) for route in found)
    return table(("method", "path", "what it does"), rows)


def shared_attributes() -> str:
    """Attributes of (nearly) all kinds of steps; a default that differs names its kind."""
    rows = []
    for name in _shared():
        kinds = {kind: one.fields[name] for kind, one in STEPS.items() if name in one.fields}
        field = next(iter(kinds.values()))
        without = [f"`{kind}`" for kind in STEPS if kind not in kinds]
        doc = field.doc + (f" Not on {' and '.join(without)}." if without else "")
        rows.append((f"`{name}`", _values(field), _defaults(kinds), doc))
    return table(("attribute", "value", "default", "meaning"), rows)


def _shared() -> list[str]:
    return [name for name in STEPS["task"].fields if _owners(name) >= SHARED_BY_MIN]


def _owners(name: str) -> int:
    return sum(name in kind.fields for kind in STEPS.values())


def _defaults(kinds: dict[str, Field]) -> str:
    """The default, or the usual default and then the others with their kinds."""
    by_default: dict[str, list[str]] = {}
    for kind, field in kinds.items():
        by_default.setdefault(_default_of(field), []).append(f"`{kind}`")
    usual, *others = sorted(by_default, key=lambda default: -len(by_default[default]))
    return "; ".join([usual, *(f"{other} on {', '.join(by_default[other])}" for other in others)])


def _default_of(field: Field) -> str:
    return "required" if field.required else field.default


def _values(field: Field) -> str:
    return " or ".join(shape.value.removeprefix("a ") for shape in field.shapes)


def attributes(kind: ObjectKind) -> str:
    """The attributes of one kind of object, without those that all steps share."""
    shared = _shared() if kind in STEPS.values() else []
    own = [field for name, field in kind.fields.items() if name not in shared]
    rows = ((f"`{field.name}`", _values(field), _default_of(field), field.doc) for field in own)
    return table(("attribute", "value", "default", "meaning"), rows)


def facts() -> str:
    """What conditions of properties read."""
    return table(("member", "value"), ((f"`{name}`", meaning) for name, meaning in FACTS.items()))


def faults() -> str:
    """What a simulation can do to a run."""
    return table(("fault", "what happens"), ((f"`{kind}`", meaning) for kind, meaning in FAULTS.items()))


def properties() -> str:
    """What a simulation checks of every flow."""
    rows = ((f"`{name}`", meaning, str(severity)) for name, (severity, meaning) in OF_EVERY_FLOW.items())
    return table(("property", "a run keeps it if", "broken"), rows)


def result_fields() -> str:
    """The results of the client, and the fields and properties of each but `document`."""
    named = {**vars(results), **vars(server_results)}.values()
    kinds = (each for each in named if inspect.isclass(each) and issubclass(each, results.Result))
    rows = []
    for kind in kinds:
        names = [name for name in kind.__struct_fields__ if name != "document"]
        names += [name for name, value in vars(kind).items() if isinstance(value, property)]
        if names:
            about = inspect.getdoc(kind) or ""
            rows.append((f"`{kind.__name__}`", about.splitlines()[0], ", ".join(f"`{name}`" for name in names)))
    return table(("result", "", "fields"), rows)


def audited_operations() -> str:
    """Every operation that the audit may record."""
    rows = [(f"`{name}`", each.meaning, f"`{each.level}`") for name, each in AUDITED.items()]
    return table(("operation", "what it does", "recorded from this level on"), rows)


def permissions() -> str:
    """Every permission, and the roles that have it."""
    rows = (
        (f"`{name}`", meaning, *("yes" if name in ROLES[role] else "" for role in ROLES))
        for name, meaning in PERMISSIONS.items()
    )
    return table(("permission", "what it allows", *ROLES), rows)


OF_LINKS = "links"
WITHOUT_PERMISSION = {
    None: "any key",
    OF_LINKS: "no key, but the code of a [sign-in link](../how-to/keys.md#sign-in-by-a-link)",
}


def needs_of_calls() -> str:
    """The permission that each call of each API needs."""
    calls: dict[str | None, dict[str, list[str]]] = {name: {} for name in (*PERMISSIONS, None, OF_LINKS)}
    for router in ROUTERS:
        for route in router.routes:
            if isinstance(route, APIRoute):
                path = f"`{next(iter(route.methods))} {route.path}`"
                needed = OF_LINKS if route.name == "sign_in" else REST_NEEDS[route.name].permission
                calls[needed].setdefault("REST", []).append(path)
    for action in ACTIONS:
        calls[RPC_NEEDS[action].permission].setdefault("RPC", []).append(f"`{action}`")
    for _, _, need, serve in FC_ROUTES:
        calls[need.permission].setdefault("FC", []).append(f"`{serve.__name__}`")  # type: ignore[attr-defined]
    for (method, path), (_, need) in MNS_CALLS.items():
        calls[need.permission].setdefault("MNS", []).append(f"`{method} {path}`")
    rows = (
        (WITHOUT_PERMISSION.get(name) or f"`{name}`", *("<br>".join(by_api.get(api, ())) for api in APIS))
        for name, by_api in calls.items()
    )
    return table(("permission", *APIS), rows)


def alerts() -> str:
    """The alerts of the example, for readers of the page on monitoring."""
    file = Path(__file__).parents[2] / "examples" / "monitoring" / "alerts.yaml"
    rules = [rule for group in yaml.safe_load(file.read_text("utf-8"))["groups"] for rule in group["rules"]]
    rows = (
        (
            rule["alert"],
            f"`{rule['expr']}`".replace("|", "\\|") + (f" for {rule['for']}" if "for" in rule else ""),
            rule["annotations"]["summary"],
            rule["annotations"]["action"],
        )
        for rule in rules
    )
    return table(("alert", "condition", "meaning", "then"), rows)


TABLES: Final[dict[str, Callable[[], str]]] = {
    "settings": settings,
    "audited operations": audited_operations,
    "permissions": permissions,
    "needs of calls": needs_of_calls,
    "exit codes": exit_codes,
    "limits": limits,
    "fixed limits": fixed_limits,
    "diagnostics": diagnostics,
    "rules": rules,
    "rules in full": rules_in_full,
    "API errors": api_errors,
    "REST errors": rest_errors,
    "errors of calls": call_errors,
    "transient errors": transient_errors,
    "refused addresses": refused_addresses,
    "private addresses": private_addresses,
    "invocation states": invocation_states,
    "execution statuses": execution_statuses,
    "waits": waits,
    "messages by wait": messages_by_wait,
    "alerts": alerts,
    "metrics": metrics,
    "named metrics": named_metrics,
    "results of the client": result_fields,
    "commands": commands,
    "common options": common_options,
    "actions": actions,
    "routes": routes,
    "attributes of every step": shared_attributes,
    **{
        f"attributes of {kind.title}": partial(attributes, kind)
        for kind in KINDS
        if kind.title not in ("a pass step", "a succeed step")  # which have no table of their own
    },
    **{f"attributes of {kind.title}": partial(attributes, kind) for kind in FLOW_TEST_KINDS},
    "facts of a run": facts,
    "faults": faults,
    "properties of every flow": properties,
}
"""Each generated part by the name that its marker gives."""
