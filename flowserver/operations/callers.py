"""Who calls, and what each call needs. The facades declare a `Need` for every call; `Caller.require` decides."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from flowserver.base.errors import AccessDenied
from flowserver.base.request_context import present_request
from flowserver.operations.permissions import ADMIN, PERMISSIONS, ROLES, roles_with

Sees = Callable[[str], bool]
"""`Caller.sees` of the caller that gets an answer."""


def sees_all(_: str) -> bool:
    """Of a caller that may see all flows."""
    return True


class Flows(Enum):
    """Which flows a call concerns, if no parameter of it names one."""

    NONE = "none"
    """None: the role alone decides."""

    OWN = "own"
    """Those of the caller: what serves the call asks `Caller.require_flow`, or leaves other flows out."""

    ALL = "all"
    """All flows together: keys that are limited to some flows may not make this call."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a call needs of its caller."""

    permission: str | None
    """None: any caller that the server lets in may make it."""

    flow: str | Flows = Flows.NONE
    """The parameter, or part of the path, that names the call's flow; or which flows it concerns."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller that the server has let in."""

    role: str = ADMIN
    flows: str = ""
    """What the names of the flows begin with that it may see and use; "" for all flows."""

    label: str | None = None
    """The label of its key; None if the server has no keys."""

    key_id: str = ""
    """The id of its key; "" if the server has no keys."""

    @property
    def permissions(self) -> list[str]:
        """What it may do, in the order of the table."""
        mine = ROLES.get(self.role, frozenset())
        return [name for name in PERMISSIONS if name in mine]

    def require(self, need: Need, flow: str | None = None) -> None:
        """Raises AccessDenied if the caller may not make this call; `flow` is what the need's parameter holds."""
        permission = need.permission
        request = present_request()
        if request is not None:
            request.permission, request.flow = permission or "", flow or ""
        if permission is not None and permission not in ROLES.get(self.role, ()):
            raise AccessDenied(_refusal(self.role, permission))
        if not self.flows or need.flow is Flows.NONE or need.flow is Flows.OWN:
            return
        self.require_flow(None if need.flow is Flows.ALL else flow)

    def require_flow(self, flow: str | None) -> None:
        """Raises AccessDenied if the caller may not use this flow, or, if it is None, all flows together.

        The answer is the same whether or not the flow exists.
        """
        if not self.flows or (flow is not None and flow.startswith(self.flows)):
            return
        what = "this would concern all flows" if flow is None else "not this one"
        raise AccessDenied(f"the key is for flows whose names begin with {self.flows} alone: {what}")

    def sees(self, flow: str) -> bool:
        """Whether answers to the caller may name executions of this flow."""
        return flow.startswith(self.flows)

    def names_within(self, prefix: str | None) -> str | None:
        """The prefix of the flows that it sees of those with this prefix, None for all; raises AccessDenied if none."""
        if not self.flows or (prefix or "").startswith(self.flows):
            return prefix
        if self.flows.startswith(prefix or ""):
            return self.flows
        self.require_flow(prefix)
        return prefix


EVERYTHING = Caller()
"""A caller of a server without keys."""


def _refusal(role: str, permission: str) -> str:
    others = _listed(roles_with(permission))
    meaning = PERMISSIONS[permission]
    return f"a key with the role {role} may not {meaning}: that needs the permission {permission}, which {others}"


def _listed(roles: Iterable[str]) -> str:
    *most, last = roles
    return f"the roles {', '.join(most)} and {last} have" if most else f"the role {last} has"
