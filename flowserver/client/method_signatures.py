"""Signatures of a client's methods, for `help` and for editors: those of the calls, with what a caller gets back."""

import inspect
from collections.abc import Callable
from typing import Any, Final, get_args

_SELF: Final = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)


def as_method(method: Callable[..., Any], call: Callable[..., Any], many: Any = None) -> None:
    """Give a method the signature of its call; `many` is the kind of iterator that it returns, if it is a listing."""
    method.__wrapped__ = _Wrapped(call, many)  # type: ignore[attr-defined]


class _Wrapped:
    """What `inspect` finds behind a method. It makes the signature when it is asked: programs start without."""

    __slots__ = ("_call", "_many")

    def __init__(self, call: Callable[..., Any], many: Any) -> None:
        self._call = call
        self._many = many

    @property
    def __signature__(self) -> inspect.Signature:
        signature = inspect.signature(self._call)
        result = get_args(signature.return_annotation)[-1]
        returned = result if self._many is None else self._many[result]
        parameters = [_SELF, *signature.parameters.values()]
        return signature.replace(parameters=parameters, return_annotation=returned)
