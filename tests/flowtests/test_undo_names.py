"""Which steps of a flow undo the work of which others, by what people call them."""

import sys

import pytest

from flowserver.base.limits import Limits
from flowserver.flowtests.simulating import simulate
from flowserver.flowtests.simulating.default_properties import default_properties
from flowserver.flowtests.simulating.undo_names import undo_pairs
from flowserver.flowtests.step_paths import walk
from flowserver.language.diagnostics import Severity
from flowserver.language.graph import TaskStep
from flowserver.language.parser import parse

PAIRS = {
    "ReserveStock ReleaseStock": "ReserveStock ReleaseStock",
    "Reserve ReleaseReservation": "Reserve ReleaseReservation",
    "Reserve CancelReservation": "Reserve CancelReservation",
    "Reserve Charge Release": "Reserve Release",
    "reserve_stock release_reservation": "reserve_stock release_reservation",
    "Book Pay CancelBooking": "Book CancelBooking",
    "BookHotel CancelHotelBooking": "BookHotel CancelHotelBooking",
    "ReserveHotel CancelHotelBooking": "ReserveHotel CancelHotelBooking",
    "Charge RefundCharge": "Charge RefundCharge",
    "Charge Ship Refund": "Charge Refund",
    "ChargeCard RefundPayment": "ChargeCard RefundPayment",
    "Pay RefundPayment": "Pay RefundPayment",
    "Subscribe CancelSubscription": "Subscribe CancelSubscription",
    "AllocateIp ReleaseAllocation": "AllocateIp ReleaseAllocation",
    "Charge NotifyCustomer=refund": "Charge NotifyCustomer",
    "CreateUser !DeleteUser": "CreateUser DeleteUser",
    # What is not sure:
    "BookHotel BookFlight CancelBooking": "",
    "ChargeFee ChargeOrder Refund": "",
    "CheckOrder CancelOrder": "",
    "CreateUser DeleteUser": "",
    "CreateUser !DeleteSession": "",
    "RegisterCustomer NotifyCustomer=refund": "",
    "Train CancelTrip": "",
    "BookHotel CancelFlight": "",
    "Rename Rollback": "",
}
"""Tasks, those with `!` as goals of a catch and with `=` the function's name; and pairs, the undoing one second."""


@pytest.mark.parametrize(("names", "expected"), PAIRS.items(), ids=PAIRS)
def test_pairs_are_found_by_names(names: str, expected: str) -> None:
    text = "version: v1\ntype: flow\nsteps:\n"
    for each in names.replace("!", "").split():
        name, _, function = each.partition("=")
        text += f"  - {{type: task, name: {name}, resourceArn: 'acs:fc:::services/s/functions/{function or 'f'}'}}\n"
    tasks = {path: step for path, step in walk(parse(text, Limits()).flow) if isinstance(step, TaskStep)}
    caught = {each[1:] for each in names.split() if each[0] == "!"}
    assert [f"{done} {undo}" for done, undo in undo_pairs(tasks, caught)] == ([expected] if expected else [])


@pytest.mark.parametrize(("done", "undo"), [("Reserve%Room", "Release%Reservation"), ("Ship%", "Release%")])
def test_the_work_to_find_pairs_grows_no_faster_than_the_flow(done: str, undo: str) -> None:
    """Calls of functions are counted: twice as many steps take hardly more than twice as many."""

    def calls(count: int) -> int:
        counted = 0

        def count_call(_frame: object, event: str, _argument: object) -> None:
            nonlocal counted
            counted += event == "call"

        text = "version: v1\ntype: flow\nsteps:\n"
        for number in range(count):
            name, goal = done.replace("%", f"N{number}"), undo.replace("%", f"N{number}")
            text += f"  - {{type: task, name: {name}, resourceArn: 'acs:fc:::services/s/functions/f', "
            text += f"catch: [{{errors: [FnF.ALL], goto: {goal}}}]}}\n"
            text += f"  - {{type: task, name: {goal}, resourceArn: 'acs:fc:::services/s/functions/f'}}\n"
        flow = parse(text, Limits()).flow
        sys.setprofile(count_call)
        try:
            default_properties(flow)
        finally:
            sys.setprofile(None)
        return counted

    assert calls(200) < 2.3 * calls(100)


def test_a_catch_for_one_error_alone_keeps_a_reservation() -> None:
    text = """version: v1
type: flow
steps:
  - {type: task, name: Reserve, resourceArn: 'acs:fc:::services/s/functions/reserve'}
  - type: task
    name: Charge
    resourceArn: acs:fc:::services/s/functions/charge
    errorMappings: [{target: why, source: $local.error}]
    catch: [{errors: [CardDeclined], goto: ReleaseReservation}]
    end: true
  - {type: task, name: ReleaseReservation, resourceArn: 'acs:fc:::services/s/functions/release'}
  - {type: fail, name: Failed, error: NotOrdered}
"""
    found = simulate(text)
    assert [(each.property, each.severity, each.path) for each in found.failures] == [
        ("undone", Severity.WARNING, "Reserve")
    ]
    assert found.undone_by == (("Reserve", "ReleaseReservation"),)
    assert simulate(text.replace("CardDeclined", "FnF.ALL")).failures == ()
