"""The commands `flowserver keys …`: access keys, straight in the database, whether or not a server runs on it."""

import re
import sys
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Final, Literal

import typer

from flowserver.base.clock import SystemClock, format_instant
from flowserver.base.encryption import CannotDecrypt, Encryption
from flowserver.base.limits import Limits
from flowserver.base.names import is_name
from flowserver.cli.command_records import record_command
from flowserver.cli.database_opening import open_ready_database
from flowserver.cli.document_output import show_document
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.options import DatabaseUrl, SecretsKeyFile
from flowserver.cli.remote.session import Session
from flowserver.cli.remote.times import seconds_of
from flowserver.cli.secret_keys import KEY_NEEDED, read_encryption, require_key
from flowserver.cli.server_options import formatted
from flowserver.cli.sign_in_links import AsLink, LinkServer, add_sign_in_link, require_url, show_link
from flowserver.cli.tables import aligned
from flowserver.operations.access import NewAccessKey, make_access_key
from flowserver.store.access_keys import (
    AccessKey,
    Admission,
    delete_keys,
    disable_access_key,
    insert_access_key,
    list_access_keys,
    read_admission,
)
from flowserver.store.encrypted_values import place_of
from flowserver.store.schema.tables import access_keys
from flowserver.store.sql.database import Database
from flowserver.store.task_token_keys import Step, change_task_token_keys

LABEL_CHARACTERS_MAX = 100
DAYS_MAX = 36_500
"""A key that is to live longer needs no end."""

_DURATION: Final = re.compile(r"\d+(\.\d+)?[smhdw]")

keys = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Label = Annotated[str, typer.Option("--label", help="Who uses the key; `keys list` shows it.")]
Role = Annotated[
    Literal["viewer", "starter", "worker", "operator", "deployer", "admin"],
    typer.Option("--role", help="What its holder may do."),
]
FlowPrefix = Annotated[str, typer.Option("--flows", metavar="PREFIX", help="Only flows whose names begin so.")]
Expires = Annotated[
    str, typer.Option("--expires", metavar="WHEN", help="After a time such as `90d`, or at an instant; else never.")
]
RotationStep = Annotated[Literal["add", "use", "drop"], typer.Argument(metavar="STEP", help="`add`, `use` or `drop`.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
KeyId = Annotated[str, typer.Argument(metavar="ID", help="The access key id.")]


@keys.callback()
def _keys() -> None:
    """Create, list, disable and delete access keys.

    Without keys a server is open, to programs on this machine only. Once there is a key, every caller must sign with
    one or send its bearer token, and the server may listen on other addresses.

    Keys are in the database, so these commands need no server. A running server notices a change within two seconds.
    """


@keys.command()
@formatted
def create(
    output: str,
    label: Label = "",
    role: Role = "admin",
    flows: FlowPrefix = "",
    expires: Expires = "",
    sign_in_link: AsLink = False,
    server: LinkServer = "",
    database_url: DatabaseUrl = None,
    secrets_key_file: SecretsKeyFile = None,
) -> None:
    """Create an access key and show it once.

    SDKs sign with its id and secret; REST takes the bearer token: `Authorization: Bearer TOKEN`. The first key may be
    created before the first start: a SQLite database that does not exist yet is made.

    A key does not change. To replace one, create another and disable the first. With the server's secrets key the
    secret is stored encrypted.

    With --sign-in-link it shows no secret but a link for the console, which works once, within 15 minutes. The key is
    made when the link is used.

    \b
    Examples:
      flowserver keys create --label laptop
      flowserver keys create --label shop --role starter --flows order- --expires 90d
      flowserver keys create --label ann --role viewer --sign-in-link
      flowserver keys create -o json
    """
    if len(label) > LABEL_CHARACTERS_MAX or not label.isprintable():
        raise typer.BadParameter(f"not at most {LABEL_CHARACTERS_MAX} printable characters", param_hint="--label")
    if flows and not is_name(flows):
        raise typer.BadParameter("no name of a flow begins so", param_hint="--flows")
    if sign_in_link:
        require_url(server)
    now_ms = SystemClock().now_ms()
    wanted = {"label": label, "role": role, "flows": flows}
    end_ms = _end_of(expires, now_ms)
    with open_ready_database(database_url, or_new=True) as database:
        is_first = database.run_read(read_admission) is Admission.OPEN
        if sign_in_link:
            new_link = add_sign_in_link(database, Limits(), key_expires_at=end_ms, **wanted)
            show_link(new_link, Session({"server": server}).url, output)
        else:
            new = make_access_key(now_ms=now_ms, expires_at=end_ms, **wanted)
            _add_key(database, new, read_encryption(secrets_key_file))
            _show_new(new, output)
    if is_first:
        begin = "The link makes" if sign_in_link else "This is"
        typer.echo(f"{begin} the first key: from then on every caller needs one.", err=True)


@keys.command("list")
@formatted
def list_keys(output: str, database_url: DatabaseUrl = None) -> None:
    """List the access keys.

    Oldest first, and without their secrets. The last use of a key is recorded once a minute at most.

    \b
    Example:
      flowserver keys list
    """
    with open_ready_database(database_url) as database:
        rows = [_shown(key) for key in database.run_read(list_access_keys)]
        admission = database.run_read(read_admission)
    if output == "name":
        for row in rows:
            typer.echo(row["accessKeyId"])
    elif output != "table":
        show_document(output, rows)
    elif rows:
        heading = ["ID", "ROLE", "FLOWS", "CREATED", "EXPIRES", "LAST-USED", "DISABLED", "LABEL"]
        typer.echo(aligned([heading, *([text or "-" for text in row.values()] for row in rows)]))
    elif admission is Admission.LOST:
        typer.echo("There were keys, and all are gone: the server lets no caller in until one is created.", err=True)
    else:
        typer.echo(
            "There are no keys: a server that starts now is open to every program on its machine. "
            "One that ran during `keys open` stays closed until it is restarted.",
            err=True,
        )


@keys.command()
def disable(access_key_id: KeyId, database_url: DatabaseUrl = None) -> None:
    """Disable an access key for good.

    A running server refuses it within two seconds. Disabling the last key does not open the server again.

    \b
    Example:
      flowserver keys disable FLS0123456789ABCDEF0123
    """
    with open_ready_database(database_url) as database, database.write() as connection:
        disabled = disable_access_key(connection, access_key_id, SystemClock().now_ms())
        if disabled:
            record_command(connection, "keys.disable", f"keys/{access_key_id}")
    if not disabled:
        raise CommandFailed(f"there is no enabled access key {access_key_id}", ExitCode.NOT_FOUND)
    typer.echo(f"disabled {access_key_id}")


@keys.command("open")
def open_again(yes: Yes = False, database_url: DatabaseUrl = None) -> None:
    """Delete every access key, so that the server needs none.

    From its next start the server is open to every program on its machine, and listens on loopback only. A server that
    runs stays closed until then. Without a terminal to ask at, it needs --yes.

    \b
    Example:
      flowserver keys open --yes
    """
    if not yes:
        if not sys.stdin.isatty():
            raise CommandFailed("there is no terminal to ask at: `keys open` needs --yes there", ExitCode.USAGE)
        typer.confirm("Delete every access key, and let every program on the server's machine in?", abort=True)
    with open_ready_database(database_url) as database, database.write() as connection:
        deleted = delete_keys(connection)
        record_command(connection, "keys.open", "keys")
    typer.echo(f"deleted {deleted} access keys; from its next start the server is open to programs on its machine")


@keys.command("rotate-tokens")
def rotate_tokens(
    step: RotationStep, database_url: DatabaseUrl = None, secrets_key_file: SecretsKeyFile = None
) -> None:
    """Replace the key of task tokens, in three steps.

    Run `add`, then restart every server: they know the new key. Run `use`, then restart: new tokens are made with it,
    and older ones stay valid. Run `drop` when the tasks that wait today are over, then restart: older tokens are
    refused. A server that is alone needs no restart after `add`.

    \b
    Examples:
      flowserver keys rotate-tokens add
      flowserver keys rotate-tokens use
      flowserver keys rotate-tokens drop
    """
    encryption = read_encryption(secrets_key_file)
    with open_ready_database(database_url) as database, database.write() as connection:
        try:
            count = change_task_token_keys(connection, encryption, Step(step))
        except CannotDecrypt:
            raise CommandFailed(f"the key of task tokens is encrypted: {KEY_NEEDED}", ExitCode.USAGE) from None
        record_command(connection, "keys.rotate-tokens", "keys")
    known = "one key is known" if count == 1 else f"{count} keys are known"
    typer.echo(f"{known} from the next start on")


def _add_key(database: Database, new: NewAccessKey, encryption: Encryption) -> None:
    secret = encryption.protect(new.key.secret, place_of(access_keys, new.key.access_key_id))
    with database.write() as connection:
        require_key(connection, encryption)
        insert_access_key(connection, replace(new.key, secret=secret))
        record_command(connection, "keys.create", f"keys/{new.key.access_key_id}")


def _show_new(new: NewAccessKey, output: str) -> None:
    shown = {"accessKeyId": new.key.access_key_id, "accessKeySecret": new.key.secret, "bearerToken": new.token}
    if output != "table":
        show_document(output, shown)
    else:
        typer.echo(
            aligned(
                [["access key id:", new.key.access_key_id], ["secret:", new.key.secret], ["bearer token:", new.token]]
            )
        )
    typer.echo("Keep them safe: neither the secret nor the token is shown again.", err=True)


def _shown(key: AccessKey) -> dict[str, str | None]:
    return {
        "accessKeyId": key.access_key_id,
        "role": key.role,
        "flows": key.flows,
        "createdTime": format_instant(key.created_at),
        "expiresTime": _instant(key.expires_at),
        "lastUsedTime": _instant(key.last_used_at),
        "disabledTime": _instant(key.disabled_at),
        "label": key.label,
    }


def _instant(at_ms: int | None) -> str | None:
    return None if at_ms is None else format_instant(at_ms)


def _end_of(expires: str, now_ms: int) -> int | None:
    """When a key expires, in ms; None if never. Raises CommandFailed, BadParameter."""
    if not expires:
        return None
    is_time = _DURATION.match(expires)
    end_ms = now_ms + int(seconds_of(expires, "--expires") * 1_000) if is_time else _ms_of(expires)
    if not 0 < end_ms - now_ms <= DAYS_MAX * 86_400_000:
        raise typer.BadParameter(f"not within the next {DAYS_MAX:,} days", param_hint="--expires")
    return end_ms


def _ms_of(instant: str) -> int:
    try:
        return round(datetime.fromisoformat(instant).timestamp() * 1_000)
    except (ValueError, OverflowError):
        wanted = f"give a time such as 90d, or an instant such as 2027-01-02T03:04:05Z, not {instant!r}"
        raise typer.BadParameter(wanted, param_hint="--expires") from None
