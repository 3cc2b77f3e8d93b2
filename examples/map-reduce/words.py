import json


def split(event, context):
    return {"parts": json.loads(event)["text"].splitlines()}


def count(event, context):
    return {"words": len(json.loads(event)["part"].split())}


def add(event, context):
    return {"total": sum(json.loads(event)["counts"])}
