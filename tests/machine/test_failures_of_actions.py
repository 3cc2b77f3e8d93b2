"""The error names of failed actions of other products."""

import pytest

from flowserver.machine.messages import Failure
from flowserver.machine.service_params import failure_of_action


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("QueueNotExist", "MNS.QueueNotExist"),
        ("MNS.QueueNotExist", "MNS.QueueNotExist"),
        ("FC.ResourceThrottled", "FC.ResourceThrottled"),
        ("FnF.TaskTimeout", "FnF.TaskTimeout"),
    ],
)
def test_the_error_begins_with_the_product_s_name_or_is_the_server_s(error: str, expected: str) -> None:
    assert failure_of_action(Failure(error, "why"), "MNS") == Failure(expected, "why")
