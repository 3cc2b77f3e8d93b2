"""The text of a server's refusal, for people."""

import httpx

from flowserver.hosting.errors import KEY_WANTED


def reason_of(response: httpx.Response) -> str:
    """The reason in words, with its code if the server names one; never the raw body."""
    if response.status_code == httpx.codes.UNAUTHORIZED and "Authorization" not in response.request.headers:
        return KEY_WANTED
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if isinstance(problem, dict):
        code, detail = problem.get("code"), problem.get("detail") or problem.get("message")
        if isinstance(detail, str):
            return f"{detail} ({code})" if code else detail
    return f"the server answered {response.status_code}"
