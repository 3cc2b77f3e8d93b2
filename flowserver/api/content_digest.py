"""The header Content-MD5 of requests, in the forms in which clients write it."""

import base64
import binascii
import hashlib


def is_digest_of(text: str, body: bytes) -> bool:
    """Whether the header's value is the MD5 of the body.

    It is the Base64 of the digest, as in HTTP; or of its hexadecimal text, as most SDKs write it; or that text itself.
    """
    digest = hashlib.md5(body, usedforsecurity=False)
    if text.lower() == digest.hexdigest():
        return True
    try:
        given = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return given.lower() == digest.hexdigest().encode() or given == digest.digest()
