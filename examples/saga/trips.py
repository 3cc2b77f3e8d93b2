import json


class SoldOut(Exception):
    pass


def book(event, context):
    wish = json.loads(event)
    if wish["thing"] == wish["soldOut"]:
        raise SoldOut(f"there is no {wish['thing']} left")
    context.logger.info("booked a %s", wish["thing"])
    return {"booking": f"{wish['thing']}-1"}


def cancel(event, context):
    context.logger.info("cancelled %s", json.loads(event)["booking"])
    return {}
