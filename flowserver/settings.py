"""Every setting of the server: its name, default and bounds.

Flags of `serve` fill it, then FLOWSERVER_… variables, then the settings file, which is YAML.
"""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from flowserver.base.default_database import default_database_url
from flowserver.base.encryption import check_key
from flowserver.base.limits import RETENTION_DAYS_MAX
from flowserver.base.task_tokens import CELL_PATTERN
from flowserver.base.yaml_files import YamlFile, YamlFileInvalid, read_yaml


class SettingsFileInvalid(ValueError):
    """The settings file is not a YAML mapping of settings; each of `mistakes` says where and why.

    `known` are the settings in it that do exist.
    """

    def __init__(self, mistakes: list[str], known: Mapping[str, Any] = MappingProxyType({})) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = mistakes
        self.known = dict(known)


class Settings(BaseSettings):
    """Settings of one server process; each can be given as the environment variable FLOWSERVER_{NAME}.

    Making it raises OSError if the settings file cannot be read, else pydantic's ValidationError with every mistake;
    those in the form and the keys of the settings file are one SettingsFileInvalid at the field `settings`.
    """

    model_config = SettingsConfigDict(env_prefix="FLOWSERVER_", extra="ignore", hide_input_in_errors=True)

    settings: Path | None = Field(
        None, description="YAML file with any of the settings below; flags and variables win over it."
    )
    host: str = Field("127.0.0.1", description="Address to listen on; other than loopback only with access keys.")
    port: int = Field(8080, ge=0, le=65_535, description="Port to listen on; 0 picks a free one.")
    database_url: str = Field(
        default_factory=default_database_url,
        description="Where all data is: sqlite:///FILE or postgresql://USER@HOST/NAME.",
    )
    migrate: bool | None = Field(
        None,
        description="Whether a start migrates a database of an older version first. Unless it is set, a start only "
        "creates the tables of a new SQLite database; false does not create them either.",
    )
    limits: Literal["default", "cloud"] = Field(
        "default", description="Profile of limits: generous ones, or those the cloud service documents."
    )
    lenient: bool = Field(
        False,
        description="Whether unknown attributes of definitions, and empty ones, are warnings instead of errors.",
    )
    missing_source: Literal["null", "fail"] = Field(
        "null", description="What a mapping source that is not found gives: null, or a failed step."
    )
    child_lifecycle: Literal["owned", "independent"] = Field(
        "owned",
        description="Life cycle of an execution that a `sync` step starts: `owned` stops it when the step no longer "
        "waits for it, `independent` lets it run on, as the cloud service does.",
    )
    queue_bodies: Literal["base64", "plain"] = Field(
        "base64",
        description="How task steps write messages to queues; in Base64 the SDKs' own decoding gives the text back.",
    )
    allowed_hosts: Annotated[list[str], NoDecode] = Field(
        default_factory=list,
        description="Further Host names that a server without access keys answers to, e.g. a container's name.",
    )
    private_functions: bool = Field(
        True,
        description="Whether functions, hooks and HTTP subscribers may be at private addresses: loopback, private "
        "networks, unique local and CGNAT addresses.",
    )
    function_networks_allowed: Annotated[list[str], NoDecode] = Field(
        default_factory=list,
        description="Networks and hosts that may be called though a wider network is refused: 10.1.0.0/16, "
        "pay.example, *.example.",
    )
    function_networks_denied: Annotated[list[str], NoDecode] = Field(
        default_factory=list,
        description="Networks and hosts that are not called, unless a narrower network is allowed; with 0.0.0.0/0 and "
        "::/0, only what is allowed is called.",
    )
    signing_secrets_file: Path | None = Field(
        None,
        description="File of the secrets that sign calls of functions and hooks, and pushes of topics over HTTP, as "
        "Standard Webhooks says: whsec_..., one a line. Without it nothing is signed.",
    )
    region: str = Field(
        "local",
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="Name of the region that DescribeRegions answers; it has no other effect.",
    )
    cell: str = Field(
        "",
        pattern=CELL_PATTERN,
        description="Name of this server among several that share out flows. Task tokens carry it; the others then "
        "answer a report with the name of the server that it belongs to.",
    )
    queues: Annotated[dict[str, str], NoDecode] = Field(
        default_factory=dict,
        repr=False,  # a URL may hold a password
        description="Queues that a broker keeps, by name: NAME=nats://HOST:PORT for a NATS server with JetStream.",
    )
    console: bool = Field(True, description="Whether browsers that open the server's URL get the console.")
    processes: int = Field(
        1,
        ge=1,
        le=2,
        description="Processes of this server. With 2, a second process, for a second core, serves HTTP and calls "
        "functions.",
    )
    drain_seconds: float = Field(
        10.0,
        ge=0,
        le=3_600,
        description="On SIGTERM, how long running calls may continue. Calls that are cut off are made again by another "
        "node, or after the next start.",
    )
    retention_days: int = Field(
        30,
        ge=0,
        le=RETENTION_DAYS_MAX,
        description="How many days ended executions are kept, unless their flow says otherwise; 0 keeps them for ever.",
    )
    retention_gib: float = Field(
        10.0,
        ge=0,
        allow_inf_nan=False,
        description="From how many GiB of data on the executions that ended first are deleted early; queues, "
        "deliveries and invocations do not count. 0 for no bound.",
    )
    disk_reserve_mib: int = Field(
        128,
        ge=0,
        le=1_073_741_824,
        description="MiB of the disk with the SQLite file that are kept for work that has begun: with less, starts, "
        "redrives, invocations and messages are refused. 0 for none.",
    )
    data_gib_max: float = Field(
        0.0,
        ge=0,
        allow_inf_nan=False,
        description="From how many GiB of data on the same is refused: for PostgreSQL, whose disk the server does not "
        "see. 0 for no bound.",
    )
    audit: Literal["changes", "reports", "all"] = Field(
        "changes",
        description="What the audit records: changes that people and deployments make; reports on waiting tasks, too; "
        "or all, with starts, invocations and messages sent.",
    )
    audit_days: int = Field(
        365,
        ge=1,
        le=RETENTION_DAYS_MAX,
        description="How many days records of the audit are kept.",
    )
    secrets_key: Annotated[list[SecretStr], NoDecode] = Field(
        default_factory=list,
        repr=False,
        description="Keys that encrypt secrets in the database: the first encrypts, all decrypt.",
    )
    secrets_key_file: Path | None = Field(
        None,
        description="File with the keys that encrypt secrets, one a line, in place of the setting `secrets_key`.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least severe log lines shown.")
    log_format: Literal["auto", "human", "json"] = Field(
        "auto",
        description="Form of the log on stderr: lines for people, or JSON objects, one a line; auto is for people on a "
        "terminal, else JSON. With json the lines of the start are JSON, too.",
    )
    access_log: bool = Field(False, description="Whether each request is logged when it has been answered.")

    tracing: Literal["off", "otlp"] = Field(
        "off",
        description="Whether spans of executions and requests are exported, as OTLP over HTTP; the variables "
        "OTEL_EXPORTER_OTLP_... say where to. Needs the extra `otel`.",
    )

    def encryption_keys(self) -> list[str]:
        """The keys that encrypt secrets, the first one for encryption. Raises OSError."""
        if self.secrets_key_file is not None:
            return _keys_in(self.secrets_key_file)
        return [key.get_secret_value() for key in self.secrets_key]

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Where values come from; the first source that has a value wins."""
        return init_settings, env_settings, dotenv_settings, file_secret_settings, _FileSource(settings_cls)

    @field_validator("settings")
    @classmethod
    def _check_file(cls, path: Path | None) -> Path | None:
        if path not in (None, Path()):  # an empty variable is a path, too
            read_settings_file(path)
        return path

    @field_validator("tracing", mode="before")
    @classmethod
    def _read_off(cls, value: object) -> object:
        """An `off` without quotes in the file, where it means false."""
        return "off" if value is False else value

    @field_validator("missing_source", mode="before")
    @classmethod
    def _read_null(cls, value: object) -> object:
        """A `null` without quotes in the file, where it means the word."""
        return "null" if value is None else value

    @field_validator("allowed_hosts", "function_networks_allowed", "function_networks_denied", mode="before")
    @classmethod
    def _split_hosts(cls, value: object) -> object:
        """`a.example,b.example` in a variable; a list from flags."""
        return [host.strip() for host in value.split(",") if host.strip()] if isinstance(value, str) else value

    @field_validator("secrets_key", mode="before")
    @classmethod
    def _split_keys(cls, value: object) -> object:
        """`KEY,OLD_KEY` in a variable; the same, or a list, in the file."""
        keys = [key.strip() for key in value.split(",")] if isinstance(value, str) else value
        if not isinstance(keys, list):
            return [] if keys is None else keys
        for key in keys:
            if str(key).startswith("@"):
                raise ValueError("takes keys; give their file as secrets_key_file, or FLOWSERVER_SECRETS_KEY_FILE")
            check_key(str(key))
        return keys

    @field_validator("secrets_key_file")
    @classmethod
    def _check_key_file(cls, path: Path | None, others: ValidationInfo) -> Path | None:
        if path is None:
            return None
        if others.data.get("secrets_key"):
            raise ValueError("cannot be given together with secrets_key")
        try:
            keys = _keys_in(path)
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'not text'}") from None
        if not keys:
            raise ValueError(f"{path} holds no key; make one: flowserver secrets new-key")
        for number, key in enumerate(keys, 1):
            try:
                check_key(key)
            except ValueError as error:
                raise ValueError(f"key {number} of {path} {error}") from None
        return path

    @field_validator("queues", mode="before")
    @classmethod
    def _pair_queues(cls, value: object) -> object:
        """`a=nats://x b=nats://y` in a variable, `a=nats://x` in each flag, a mapping in the file, perhaps empty."""
        texts = value.split() if isinstance(value, str) else value
        if not isinstance(texts, list | tuple):
            return {} if texts is None else texts
        pairs = [str(text).partition("=") for text in texts]
        queues = {name: url for name, _, url in pairs}
        if len(queues) < len(pairs) or not all(equals for _, equals, _ in pairs):
            raise ValueError("each queue must be written NAME=URL, once")
        return queues


class _FileSource(PydanticBaseSettingsSource):
    """The settings file, if the flags or the environment name one."""

    def __call__(self) -> dict[str, Any]:
        """The file's settings; mistakes in its keys are reported by `_check_file`."""
        path = self.current_state.get("settings")
        try:
            return read_settings_file(Path(path)).content or {} if path else {}
        except SettingsFileInvalid as error:
            return error.known

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Never used: `__call__` returns all values at once."""
        raise NotImplementedError


def read_settings_file(path: Path) -> YamlFile:
    """The file, every key of it a setting; values are not checked. Raises OSError, SettingsFileInvalid."""
    try:
        file = read_yaml(path)
    except YamlFileInvalid as error:
        raise SettingsFileInvalid([str(error)]) from None
    content = {} if file.content is None else file.content
    if not isinstance(content, dict):
        raise SettingsFileInvalid([f"{path} must be a mapping of settings, such as `port: 9000`"])
    names = Settings.model_fields.keys() - {"settings"}
    unknown = [key for key in content if key not in names]
    if unknown:
        mistakes = [f"{path}, line {file.line_of([key])}: there is no setting {_named(key, names)}" for key in unknown]
        raise SettingsFileInvalid(mistakes, {key: content[key] for key in content if key in names})
    return file


def _keys_in(path: Path) -> list[str]:
    lines = (line.strip() for line in path.read_text("utf-8-sig").split("\n"))
    return [line for line in lines if line and not line.startswith("#")]


def _named(key: object, names: Collection[str]) -> str:
    near = get_close_matches(str(key), names, n=1)
    return f"{key}; did you mean {near[0]}?" if near else str(key)
