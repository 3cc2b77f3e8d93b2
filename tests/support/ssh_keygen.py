"""A stand-in for ssh-keygen on machines without it: it makes Ed25519 keys, and signs and verifies files as SSHSIG.

The format is that of OpenSSH (PROTOCOL.sshsig), so where ssh-keygen is installed, each verifies what the other signs.
"""

import argparse
import base64
import hashlib
import sys
import textwrap
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

MAGIC = b"SSHSIG"
BEGIN, END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
REFUSED = 255
"""ssh-keygen's exit code for a signature that does not verify."""


def packed(*values: bytes) -> bytes:
    """Strings of the SSH protocol: each with its length, in four bytes, before it."""
    return b"".join(len(value).to_bytes(4, "big") + value for value in values)


def unpacked(data: bytes) -> list[bytes]:
    """The strings that `packed` has put together."""
    values = []
    while data:
        size = int.from_bytes(data[:4], "big")
        values.append(data[4 : 4 + size])
        data = data[4 + size :]
    return values


def signed_text(namespace: str, message: bytes) -> bytes:
    """What is signed in place of the message."""
    return MAGIC + packed(namespace.encode(), b"", b"sha512", hashlib.sha512(message).digest())


def make_key(path: Path) -> None:
    """Write a new key to the path, and its public half beside it."""
    key = Ed25519PrivateKey.generate()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    path.chmod(0o600)
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    path.with_name(f"{path.name}.pub").write_bytes(public + b" test\n")


def sign(key_path: Path, namespace: str, path: Path) -> None:
    """Write the file's signature to a file of its name and `.sig`."""
    key = load_ssh_private_key(key_path.read_bytes(), password=None)
    assert isinstance(key, Ed25519PrivateKey)
    public = packed(b"ssh-ed25519", key.public_key().public_bytes_raw())
    signature = packed(b"ssh-ed25519", key.sign(signed_text(namespace, path.read_bytes())))
    blob = MAGIC + (1).to_bytes(4, "big") + packed(public, namespace.encode(), b"", b"sha512", signature)
    lines = textwrap.wrap(base64.b64encode(blob).decode(), 70)
    path.with_name(f"{path.name}.sig").write_text("\n".join([BEGIN, *lines, END, ""]))


def verify(signers: Path, identity: str, namespace: str, signature: Path, message: bytes) -> bool:
    """Whether a signer of that name has signed the message for the name space."""
    blob = base64.b64decode(signature.read_text().replace(BEGIN, "").replace(END, ""))
    public, given_namespace, _, _, signed = unpacked(blob[len(MAGIC) + 4 :])
    allowed = [line.split() for line in signers.read_text().splitlines()]
    if [identity, base64.b64encode(public).decode()] not in [[line[0], line[2]] for line in allowed]:
        return False
    try:
        key = Ed25519PublicKey.from_public_bytes(unpacked(public)[1])
        key.verify(unpacked(signed)[1], signed_text(namespace, message))
    except InvalidSignature:
        return False
    return given_namespace == namespace.encode()


def main(arguments: list[str]) -> int:
    """Run the one command that the options name."""
    parser = argparse.ArgumentParser(prog="ssh-keygen", allow_abbrev=False)
    parser.add_argument("-q", action="store_true")
    for option in ("-t", "-N", "-f", "-Y", "-n", "-I", "-s"):
        parser.add_argument(option)
    parser.add_argument("file", nargs="?", type=Path)
    given = parser.parse_args(arguments)
    if given.Y == "sign":
        sign(Path(given.f), given.n, given.file)
    elif given.Y == "verify":
        return 0 if verify(Path(given.f), given.I, given.n, Path(given.s), sys.stdin.buffer.read()) else REFUSED
    else:
        make_key(Path(given.f))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
