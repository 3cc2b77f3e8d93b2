"""flowserver: a self-hosted server for CloudFlow (FnF) v1 flows."""

from flowserver.base.lazy_import import load

__version__: str


def __getattr__(name: str) -> str:
    """The version, read from the installed package when it is asked for: that takes longer than many a command."""
    if name != "__version__":
        raise AttributeError(name)
    version: str = load("importlib.metadata:version")("flowserver")
    return version
