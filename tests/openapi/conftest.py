"""The OpenAPI document in a file, as tools read it."""

import json
from pathlib import Path

import pytest

from flowserver.api.rest.openapi import openapi_document
from flowserver.api.rest.router import ROUTERS

FOLDER = Path(__file__).parent


@pytest.fixture(scope="session")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file."""
    file = tmp_path_factory.mktemp("openapi") / "openapi.json"
    file.write_text(json.dumps(openapi_document(ROUTERS)))
    return file
