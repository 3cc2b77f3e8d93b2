"""Signatures of a client's methods, for `help` and for editors: those of the calls, with what a caller gets back."""

import inspect
from collections.abc import Callable
from typing import Any, Final, get_args

_SELF: Final = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)


def as_method(method: Callable[..., Any], call: Callable[..., Any], many: Any = None) -> None:
    """Give a method the signature of its call; `many` is the kind of iterator that it returns, if it is a listing."""
    signature = inspect.signature(call)
    result = get_args(signature.return_annotation)[-1]
    returned = result if many is None else many[result]
    parameters = [_SELF, *signature.parameters.values()]
    method.__signature__ = signature.replace(parameters=parameters, return_annotation=returned)  # type: ignore[attr-defined]
