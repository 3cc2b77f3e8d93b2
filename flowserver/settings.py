"""Every setting of the server: its name, default and bounds. Flags of `serve` and FLOWSERVER_… variables fill it."""

from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from flowserver.base.limits import RETENTION_DAYS_MAX


class Settings(BaseSettings):
    """Settings of one server process; each can be given as the environment variable FLOWSERVER_{NAME}."""

    model_config = SettingsConfigDict(env_prefix="FLOWSERVER_", extra="ignore")

    host: str = Field("127.0.0.1", description="Address to listen on; other than loopback only with access keys.")
    port: int = Field(8080, ge=0, le=65_535, description="Port to listen on; 0 picks a free one.")
    database_url: str = Field(
        "sqlite:///data/flowserver.db",
        description="Where all data is: sqlite:///FILE or postgresql://USER@HOST/NAME.",
    )
    limits: Literal["default", "cloud"] = Field(
        "default", description="Profile of limits: generous ones, or those the cloud service documents."
    )
    missing_source: Literal["null", "fail"] = Field(
        "null", description="What a mapping source that is not found gives: null, or a failed step."
    )
    allowed_hosts: Annotated[list[str], NoDecode] = Field(
        default_factory=list,
        description="Further Host names that a server without access keys answers to, e.g. a container's name.",
    )
    drain_seconds: float = Field(
        10.0, ge=0, le=3_600, description="On SIGTERM, how long calls under way may go on before they are given away."
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
        description="From how many GiB of data on the executions that ended first are deleted early; 0 for no bound.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least severe log lines shown.")

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _split_hosts(cls, value: object) -> object:
        """`a.example,b.example` in a variable; a list from flags."""
        return [host.strip() for host in value.split(",") if host.strip()] if isinstance(value, str) else value
