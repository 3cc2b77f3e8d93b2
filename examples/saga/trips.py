import json


class SoldOut(Exception):
    pass


class Busy(Exception):
    pass


called = set()


def call_hotel(booking):
    """The hotel's line is busy at the first call about each booking."""
    if booking not in called:
        called.add(booking)
        raise Busy("the line is busy")


def book(event, context):
    wish = json.loads(event)
    booking = f"{wish['trip']}-{wish['thing']}"  # derived from the request, so that a repeated call books once
    if wish["thing"] == wish["soldOut"]:
        raise SoldOut(f"there is no {wish['thing']} left")
    if wish["thing"] == "hotel":
        call_hotel(booking)
    context.logger.info("booked %s", booking)
    return {"booking": booking}


def cancel(event, context):
    booking = json.loads(event)["booking"]
    if booking.endswith("-hotel"):
        call_hotel(booking)
    context.logger.info("cancelled %s", booking)
    return {}
