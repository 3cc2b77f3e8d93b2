"""Which requests are refused while too much work waits: those that have changed nothing yet.

The client of a refused request (429) repeats it. So once a request has submitted a change, neither its further reads
nor its further changes are refused: most often the change is committed by then, and its repeat would be a second one.
A request does one thing after the other, so this adds no more waiting work than there are requests.

`base.request_context` knows the present request. Work outside a request keeps to the bounds even after a change.
"""

from flowserver.base.request_context import present_request


def is_refused(*, is_full: bool, is_change: bool = False) -> bool:
    """Whether a caller's work is refused, where as much as may waits if `is_full`. An accepted change is remembered."""
    request = present_request()
    if request is None:
        return is_full
    if is_full and not request.has_changed:
        return True
    request.has_changed = request.has_changed or is_change
    return False
