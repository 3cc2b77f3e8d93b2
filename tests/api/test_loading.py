"""REST is loaded with the first request to it, and a failure to load it is temporary."""

import pytest

from flowserver import server
from flowserver.server import Application


async def test_a_failure_to_load_rest_is_temporary(app: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(place: str) -> None:
        raise OSError("too many open files")

    with monkeypatch.context() as broken:
        broken.setattr(server, "load", fail)
        with pytest.raises(OSError, match="too many"):
            await app.rest()
    assert await app.rest() is await app.rest()
