"""The commands `flowserver secrets …`: those that talk to a server, and those about the keys that encrypt secrets."""

from typing import Annotated, Final

import typer
from sqlalchemy import Connection

from flowserver.base.encryption import new_key
from flowserver.cli.command_records import record_command
from flowserver.cli.database_opening import open_ready_database
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.options import DatabaseUrl, SecretsKeyFile
from flowserver.cli.printable import printable
from flowserver.cli.remote.secrets import secrets
from flowserver.cli.secret_keys import KEY_NEEDED, read_encryption
from flowserver.store.encrypted_values import decrypt_all, drop_value, encrypt_again, unreadable_values
from flowserver.store.named_secrets import count_secrets

NAMED_MAX: Final = 5

Decrypt = Annotated[bool, typer.Option("--decrypt", help="Store all of it in clear text again.")]
DropUnreadable = Annotated[bool, typer.Option("--drop-unreadable", help="Delete what none of the keys decrypts.")]


@secrets.command("new-key")
def make_key() -> None:
    """Print a new key that encrypts secrets.

    The server takes it as FLOWSERVER_SECRETS_KEY, or in the file of the setting `secrets_key_file`. Keep a copy apart
    from backups of the database: without the key nothing decrypts the secrets.

    \b
    Example:
      flowserver secrets new-key > secrets.key
    """
    typer.echo(new_key())


@secrets.command()
def rekey(
    drop_unreadable: DropUnreadable = False,
    decrypt: Decrypt = False,
    database_url: DatabaseUrl = None,
    secrets_key_file: SecretsKeyFile = None,
) -> None:
    """Encrypt everything with the first of the keys.

    These are the secrets of functions, the secrets of access keys, and the key of task tokens. What was made before
    there was a key is in clear text until the first `rekey`. It needs no server. Servers may run on the database
    meanwhile, if all of them have the key. If something is encrypted with a key that was not given, nothing changes.

    --drop-unreadable is for a key that is lost: it deletes what none of the keys decrypts. Functions then need their
    secrets set again, callers other access keys, and waiting tasks new tokens.

    --decrypt stores all of it in clear text, so that the database needs no key any more. It is refused while functions
    have secrets. Stop the servers first, and start them without the key.

    \b
    Examples:
      flowserver secrets rekey --secrets-key-file secrets.key
      flowserver secrets rekey --secrets-key-file new.key --drop-unreadable
      flowserver secrets rekey --secrets-key-file secrets.key --decrypt
    """
    encryption = read_encryption(secrets_key_file)
    if not encryption.is_on:
        raise CommandFailed(f"there is no key to encrypt or decrypt with: {KEY_NEEDED}", ExitCode.USAGE)
    with open_ready_database(database_url) as database, database.write() as connection:
        unreadable = unreadable_values(connection, encryption)
        if unreadable and not drop_unreadable:
            named = ", ".join(each.place for each in unreadable[:NAMED_MAX])
            raise CommandFailed(
                f"nothing was changed: no key decrypts {len(unreadable)} of the secrets ({named}); "
                "give the old key behind the new one",
                ExitCode.CONFLICT,
            )
        dropped = [each for each in unreadable if drop_value(connection, each)]
        if decrypt:
            _require_no_secrets(connection)
        changed = (decrypt_all if decrypt else encrypt_again)(connection, encryption)
        record_command(connection, "secrets.rekey", "secrets")
    for each in dropped:
        typer.echo(f"deleted {printable(each.place)}")
    done = "decrypted {}; the database needs no key" if decrypt else "encrypted {} with the first key"
    typer.echo(done.format(changed))


def _require_no_secrets(connection: Connection) -> None:
    if count := count_secrets(connection):
        raise CommandFailed(
            f"nothing was changed: secrets of functions are never stored in clear text, and there are {count}; delete "
            "them first: flowserver secrets delete NAME",
            ExitCode.CONFLICT,
        )


__all__ = ["secrets"]
