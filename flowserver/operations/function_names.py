"""How callers name a function, and the error if no function has that name. Pure."""

from flowserver.base.errors import (
    FlowServerError,
    InternalServerError,
    InvalidArgument,
)
from flowserver.base.names import NAME_RULE, is_name
from flowserver.engine.functions.endpoint_lookup import FunctionKey
from flowserver.invokers.error_names import REFUSALS
from flowserver.machine.messages import Failure

WITHOUT_SERVICE = "-"
"""How a path writes the service of a function that has none."""


def check_function(service: str, qualifier: str, function: str) -> FunctionKey:
    """The function's key in the registry; a qualifier of "" is none.

    Raises InvalidArgument for names that no function can have.
    """
    if service != WITHOUT_SERVICE and not is_name(service):
        raise InvalidArgument(f"the service {NAME_RULE}")
    if qualifier and not is_qualifier(qualifier):
        raise InvalidArgument(f"the qualifier {NAME_RULE}, or is a version's number")
    if not is_name(function):
        raise InvalidArgument(f"the function {NAME_RULE}")
    return service_key(service), qualifier, function


def service_key(service: str) -> str:
    """The service as it is stored: "" for none."""
    return "" if service == WITHOUT_SERVICE else service


def is_qualifier(text: str) -> bool:
    """Whether `text` may name a version or an alias of a service."""
    return is_name(text) or (text.isascii() and text.isdigit())


def not_found(failure: Failure) -> FlowServerError:
    """The error for a function that is not registered, or cannot be called."""
    return REFUSALS.get(failure.error, InternalServerError)(failure.cause)
