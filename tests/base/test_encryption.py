"""Encrypted texts: with which keys they can be read, and where."""

import pytest

from flowserver.base.encryption import PREFIX, CannotDecrypt, Encryption, KeyInvalid, NoKey, new_key

OLD, NEW, OTHER = new_key(), new_key(), new_key()
TEXT = "the value"


def test_what_the_first_key_encrypts_all_keys_decrypt():
    stored = Encryption([OLD]).encrypt(TEXT, "t/a")
    assert TEXT not in stored
    assert stored.startswith(PREFIX)
    assert stored != Encryption([OLD]).encrypt(TEXT, "t/a")
    for keys in ([OLD], [NEW, OLD], [OLD, NEW]):
        assert Encryption(keys).decrypt(stored, "t/a") == TEXT
        assert Encryption(keys).reveal(stored, "t/a") == TEXT
    both = Encryption([NEW, OLD])
    assert not both.is_current(stored)
    assert both.is_current(both.encrypt(TEXT, "t/a"))
    assert Encryption([NEW]).decrypt(both.encrypt(TEXT, "t/a"), "t/a") == TEXT


@pytest.mark.parametrize("keys", [[], [NEW], [NEW, OTHER]])
def test_other_keys_decrypt_nothing(keys):
    stored = Encryption([OLD]).encrypt(TEXT, "t/a")
    for read in (Encryption(keys).decrypt, Encryption(keys).reveal):
        with pytest.raises(CannotDecrypt, match=r"^no key decrypts t/a$"):
            read(stored, "t/a")


def test_a_text_is_bound_to_its_place():
    encryption = Encryption([OLD])
    with pytest.raises(CannotDecrypt):
        encryption.decrypt(encryption.encrypt(TEXT, "t/a"), "t/b")


@pytest.mark.parametrize("damage", ["fernet1:", "fernet1:é", "fernet1:\udc80", "fernet1:gAAAA"])
def test_a_damaged_text_is_not_decrypted(damage):
    with pytest.raises(CannotDecrypt):
        Encryption([OLD]).reveal(damage, "t/a")
    assert not Encryption([OLD]).is_current(damage)


def test_clear_texts_of_before_can_be_read():
    encryption = Encryption([OLD])
    assert encryption.reveal(TEXT, "t/a") == Encryption().reveal(TEXT, "t/a") == TEXT
    assert not encryption.is_current(TEXT)
    with pytest.raises(CannotDecrypt):
        encryption.decrypt(TEXT, "t/a")


def test_without_a_key():
    none = Encryption()
    assert not none.is_on
    assert none.protect(TEXT, "t/a") == TEXT
    assert none.is_current(TEXT)
    with pytest.raises(NoKey):
        none.encrypt(TEXT, "t/a")
    assert Encryption([OLD]).protect(TEXT, "t/a").startswith(PREFIX)


@pytest.mark.parametrize("key", ["", "x", "A" * 43, f"{'A' * 43}=A", "é" * 32])
def test_what_is_no_key(key):
    with pytest.raises(KeyInvalid, match=r"^must be 32 bytes in URL-safe Base64; make one") as caught:
        Encryption([key])
    assert not key or key not in str(caught.value)
