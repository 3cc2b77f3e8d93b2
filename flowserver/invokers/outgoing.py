"""What the settings say of requests that leave the server."""

from dataclasses import dataclass
from typing import Final

from flowserver.base.signed_messages import Signer
from flowserver.invokers.forbidden_addresses import ORDINARY, AddressRules


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Which addresses are called, and who signs the requests; without a signer they are not signed."""

    addresses: AddressRules = ORDINARY
    signer: Signer | None = None


PLAIN: Final = Outgoing()
