"""The commands `flowserver secrets …`: those that talk to a server, and those about the keys that encrypt secrets."""

import typer

from flowserver.base.encryption import new_key
from flowserver.cli.remote.secrets import secrets


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


__all__ = ["secrets"]
