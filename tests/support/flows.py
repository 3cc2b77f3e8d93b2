"""Flows for tests, from the YAML that users write."""

from functools import lru_cache
from textwrap import dedent, indent

from flowserver.base.limits import Limits
from flowserver.language.graph import Flow
from flowserver.language.parser import parse


@lru_cache(maxsize=1000)
def flow(steps: str, attributes: str = "") -> Flow:
    """A flow of these steps, a YAML list; `attributes` are further lines beside `steps`."""
    head = f"version: v1\ntype: flow\n{dedent(attributes).strip()}\nsteps:\n"
    return parse(head + indent(dedent(steps).strip("\n"), "  "), Limits()).flow
