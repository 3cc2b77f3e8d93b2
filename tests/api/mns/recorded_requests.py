"""What the message service's SDKs sent, as bytes on the wire; the access key was `testak`, its secret `testsecret`.

One file per request in `recorded`, named by client and call: aliyun-mns-sdk 1.3.0 (python) and @alicloud/mns 1.2.0
(node). Line ends are LF there, and the file's last line end does not belong to the body.
"""

from pathlib import Path

from flowserver.api.mns.signature import SignedRequest

_FOLDER = Path(__file__).parent / "recorded"

RECORDED_NAMES = tuple(sorted(path.stem for path in _FOLDER.glob("*.http")))


def recorded_request(name: str) -> SignedRequest:
    """One recording, as the server reads it."""
    head, _, body = (_FOLDER / f"{name}.http").read_text("utf-8").removesuffix("\n").partition("\n\n")
    (method, resource, _), *lines = [line.split(" ", 2) for line in head.splitlines()]
    headers = {line[0].rstrip(":").lower(): " ".join(line[1:]) for line in lines}
    return SignedRequest(method, resource, headers, body.encode())
