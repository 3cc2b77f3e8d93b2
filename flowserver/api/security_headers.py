"""Headers that tell browsers what an answer must not be used for.

`SAFE` is in every answer: `BoundedServer` gives it to uvicorn, so that answers which uvicorn makes itself have it, too.
The policy is each answer's own: a page's lets it run the server's scripts, that of all others allows nothing.

An inline script that the server itself writes is allowed by its digest.
"""

import re
from base64 import b64encode
from hashlib import sha256
from typing import Final

_INLINE: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)

POLICY: Final = "content-security-policy"

CONSOLE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
)

DATA_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
"""For answers that are not pages, should a browser show one as a page."""

SAFE: Final = (
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
)


def policy_with_inline_scripts(page: str) -> str:
    """A policy for a page with the server's own inline scripts, and with inline styles, which Swagger UI sets."""
    digests = (b64encode(sha256(script.encode()).digest()).decode() for script in _INLINE.findall(page))
    scripts = "".join(f" 'sha256-{digest}'" for digest in digests)
    policy = CONSOLE_POLICY.replace("script-src 'self'", f"script-src 'self'{scripts}")
    return policy.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
