"""A simulated video encoder: it writes one part of its result each second."""

import json
import os
import tempfile
from pathlib import Path

FOLDER = Path(os.environ.get("VIDEO_FOLDER", tempfile.gettempdir())) / "flowserver-videos"


def load_encoder(context):
    FOLDER.mkdir(parents=True, exist_ok=True)
    context.logger.info("the encoder is loaded; videos go to %s", FOLDER)


def transcode(event, context):
    order = json.loads(event)
    unfinished = FOLDER / f"{order['video']}.part"
    with unfinished.open("w") as file:
        for second in range(order["seconds"]):
            file.write(f"second {second}\n")
            file.flush()
            # A thread cannot be killed like a process, so it checks whether its task is stopped.
            if context.stopped.wait(1):
                return None
    finished = unfinished.rename(FOLDER / f"{order['video']}.done")
    return {"file": str(finished), "seconds": order["seconds"]}


def clean_up(context):
    for unfinished in FOLDER.glob("*.part"):
        unfinished.unlink()
        context.logger.info("deleted %s", unfinished.name)
