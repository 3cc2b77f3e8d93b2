"""The encryption that commands use which work on the database themselves: the same settings as the server's."""

import os
import stat
from pathlib import Path

from sqlalchemy import Connection

from flowserver.base.encryption import Encryption
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.options import read_settings
from flowserver.store.encrypted_values import has_encrypted

KEY_NEEDED = "give its key as FLOWSERVER_SECRETS_KEY, or its file as --secrets-key-file"


def read_encryption(key_file: Path | None) -> Encryption:
    """With the keys of the flag, the environment or the settings file; raises what reading settings raises."""
    return Encryption(read_settings({"secrets_key_file": key_file}).encryption_keys())


def warning_of_key_file(file: Path | None) -> str | None:
    """What to say of a file with keys that other users of the machine can read; None if there is nothing to say."""
    if file is None or os.name != "posix":
        return None
    mode = stat.S_IMODE(file.stat().st_mode)
    if not mode & stat.S_IROTH:
        return None
    return f"every user of this machine can read the keys in {file} (mode {mode:04o}); better: chmod 600 {file}"


def require_key(connection: Connection, encryption: Encryption) -> None:
    """Raises CommandFailed if the database is encrypted and there is no key: what is added must be encrypted, too."""
    if not encryption.is_on and has_encrypted(connection):
        raise CommandFailed(
            f"this database is encrypted since a server or command had a key: {KEY_NEEDED}; to do without a key: "
            "flowserver secrets rekey --decrypt",
            ExitCode.USAGE,
        )
