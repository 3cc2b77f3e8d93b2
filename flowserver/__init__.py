"""flowserver: a self-hosted server for CloudFlow (FnF) v1 flows."""

from importlib.metadata import version

__version__ = version("flowserver")
