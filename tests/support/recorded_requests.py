"""What the public SDKs sent, as bytes on the wire; the access key was `testak`, its secret `testsecret`.

One file per request in tests/api/recorded, named by client and action. Line ends are LF there, chunked bodies are
joined, and the file's last line end does not belong to the body. The clients:

- classic: aliyun-python-sdk-fnf 1.8.3, straight and through an HTTP proxy
- tea2, tea1: alibabacloud-fnf20190315 2.0.1 and 1.1.3
- tea-v3: alibabacloud-fnf20190315 1.0.1
- node: @alicloud/fnf-2019-03-15 1.2.0
- node-v3: @alicloud/openapi-client 0.4.15
"""

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from flowserver.api.rpc.signature import SignedRequest

ACCESS_KEY_ID = "testak"
SECRET = "testsecret"

_FOLDER = Path(__file__).parents[1] / "api" / "recorded"

RECORDED_NAMES = tuple(sorted(path.stem for path in _FOLDER.glob("*.http")))


def recorded_request(name: str) -> SignedRequest:
    """One recording, decoded as a server must."""
    head, _, body = (_FOLDER / f"{name}.http").read_text("utf-8").removesuffix("\n").partition("\n\n")
    (method, target, _), *lines = [line.split(" ", 2) for line in head.splitlines()]
    url = urlsplit(target)
    return SignedRequest(
        method=method,
        path=url.path,
        query=parse_qsl(url.query, keep_blank_values=True, strict_parsing=bool(url.query)),
        form=parse_qsl(body, keep_blank_values=True),
        headers={name.rstrip(":").lower(): " ".join(value) for name, *value in lines},
        body=body.encode(),
    )
