"""What holds a secret does not show it: a log line, or a failed assertion of a library, may contain the object."""

import pytest

from flowserver.invokers.calls import Endpoint
from flowserver.operations.access import NewAccessKey, _Remembered
from flowserver.operations.callers import EVERYTHING
from flowserver.operations.sign_in_links import NewSignInLink, make_sign_in_link
from flowserver.store.encrypted_values import EncryptedValue
from flowserver.store.functions import FunctionRow
from flowserver.store.schema.tables import access_keys
from tests.store.rows import access_key

SECRET = "s3cret"
URL = f"https://host.example/?key={SECRET}"
HEADERS = {"Authorization": SECRET}
COLUMNS = access_keys.c.access_key_id, access_keys.c.secret

HOLDERS = (
    Endpoint(URL, HEADERS, 60, initialize_url=URL, pre_stop_url=URL),
    FunctionRow(
        service="s",
        function="f",
        url=URL,
        headers=HEADERS,
        timeout_seconds=60,
        created_at=1,
        modified_at=1,
        initialize_url=URL,
        pre_stop_url=URL,
    ),
    access_key("ak", secret=SECRET),
    NewAccessKey(access_key("ak", secret=SECRET), SECRET),
    _Remembered(EVERYTHING, SECRET, 1.0),
    NewSignInLink(make_sign_in_link(1, 1).link, SECRET),
    EncryptedValue(access_keys, *COLUMNS, "ak", SECRET),
)


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda each: type(each).__name__)
def test_secrets_are_not_shown(holder: object) -> None:
    assert SECRET not in repr(holder)
