import json


def take(event, context):
    context.logger.info("room 7 is taken")
    return {"room": 7}


def give_back(event, context):
    context.logger.info("room %d is free again", json.loads(event)["room"])
    return {}
