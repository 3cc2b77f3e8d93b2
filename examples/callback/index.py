#!/usr/bin/env python
import json
def handler(event, context):
    return event
