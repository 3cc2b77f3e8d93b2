"""Messages that are made from what was refused."""

from flowserver.base.errors import FlowNotExists
from flowserver.machine.messages import Failure


def test_a_refused_request_is_a_failure_under_the_name_of_its_service() -> None:
    assert Failure.of(FlowNotExists("no flow f"), "FnF") == Failure("FnF.FlowNotExists", "no flow f")
