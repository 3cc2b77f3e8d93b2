"""Encryption of what the database must not hold in clear text: secrets, access keys' secrets, the server's own keys.

The scheme is Fernet: AES-128-CBC with HMAC-SHA256. An encrypted text names its place, such as `named_secrets/SHOP`, so
that a text which is copied to another row cannot be decrypted there. Several keys may be given: the first encrypts, all
decrypt. So a key is replaced by adding another before it, encrypting everything again, and removing it.

A text that begins with `PREFIX` is encrypted; other texts were stored before there was a key.
"""

import base64
import binascii
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from flowserver.base.lazy_import import load

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

PREFIX: Final = "fernet1:"
"""What encrypted texts begin with."""

KEY_BYTES: Final = 32

_FERNET: Final = "cryptography.fernet:Fernet"
_INVALID_TOKEN: Final = "cryptography.fernet:InvalidToken"  # noqa: S105 - the name of an exception
"""Loaded with the first key: a server without one does not need them."""

_END_OF_PLACE: Final = "\0"


class KeyInvalid(ValueError):
    """A text is no key."""


class NoKey(Exception):
    """There is no key to encrypt with."""


class CannotDecrypt(Exception):
    """None of the keys decrypts a stored text; the message names its place."""


class Encryption:
    """Encrypts and decrypts texts with some keys. Immutable, so any thread may use it."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        """Raises KeyInvalid. Without keys nothing is encrypted, and only clear texts can be read."""
        for key in keys:
            check_key(key)
        make = load(_FERNET) if keys else None
        self._fernets: tuple[Fernet, ...] = tuple(make(key) for key in keys) if make else ()

    @property
    def is_on(self) -> bool:
        """Whether there is a key."""
        return bool(self._fernets)

    def encrypt(self, text: str, place: str) -> str:
        """The text, encrypted for its place; raises NoKey."""
        if not self._fernets:
            raise NoKey
        return PREFIX + self._fernets[0].encrypt(f"{place}{_END_OF_PLACE}{text}".encode()).decode()

    def protect(self, text: str, place: str) -> str:
        """The text as it is to be stored: encrypted if there is a key."""
        return self.encrypt(text, place) if self._fernets else text

    def decrypt(self, stored: str, place: str) -> str:
        """The text that was encrypted for that place; raises CannotDecrypt, also for a clear text."""
        for fernet in self._fernets if stored.startswith(PREFIX) else ():
            text = _decrypted(fernet, stored)
            if text is not None and text.startswith(f"{place}{_END_OF_PLACE}"):
                return text.partition(_END_OF_PLACE)[2]
        raise CannotDecrypt(f"no key decrypts {place}")

    def reveal(self, stored: str, place: str) -> str:
        """The text that `protect` was given; raises CannotDecrypt."""
        return self.decrypt(stored, place) if stored.startswith(PREFIX) else stored

    def is_current(self, stored: str) -> bool:
        """Whether `protect` would leave the stored text as it is: the first key encrypted it, or there is no key."""
        if not self._fernets:
            return True
        return stored.startswith(PREFIX) and _decrypted(self._fernets[0], stored) is not None


NO_ENCRYPTION: Final = Encryption()
"""Without a key."""


def new_key() -> str:
    """A new random key."""
    return base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def check_key(text: str) -> None:
    """Raises KeyInvalid, which does not repeat the text."""
    try:
        is_key = len(base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)) == KEY_BYTES
    except (binascii.Error, UnicodeError, ValueError):
        is_key = False
    if not is_key:
        raise KeyInvalid(f"must be {KEY_BYTES} bytes in URL-safe Base64; make one: flowserver secrets new-key")


def _decrypted(fernet: "Fernet", stored: str) -> str | None:
    invalid: type[Exception] = load(_INVALID_TOKEN)
    try:
        return fernet.decrypt(stored.removeprefix(PREFIX).encode("utf-8", "surrogatepass")).decode()
    except (invalid, UnicodeError):
        return None
