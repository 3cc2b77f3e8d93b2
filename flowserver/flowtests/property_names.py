"""The properties that a simulation checks of every flow. Errors hold for every right flow; warnings judge by names."""

from typing import Final

from flowserver.language.diagnostics import Severity

ENDS: Final = "ends"
OWN_MISTAKE: Final = "own-mistake"
UNDONE: Final = "undone"
UNDONE_WITHOUT_NEED: Final = "undone-without-need"
DONE_TWICE: Final = "done-twice"
SUCCEEDS: Final = "succeeds"

OF_EVERY_FLOW: Final[dict[str, tuple[Severity, str]]] = {
    ENDS: (Severity.ERROR, "It ends. A warning if only an `outage` keeps it from its end."),
    OWN_MISTAKE: (
        Severity.ERROR,
        "It does not fail with `FnF.RuntimeError` because the definition reads data that is not there.",
    ),
    UNDONE: (
        Severity.WARNING,
        "`CancelHotel` runs if it fails after `BookHotel` has succeeded: steps are paired by their names. It need not "
        "if the execution fails in another undoing step after its retries.",
    ),
    UNDONE_WITHOUT_NEED: (
        Severity.WARNING,
        "No step whose name says that it undoes work, and to which a `catch` leads, runs if nothing failed.",
    ),
    DONE_TWICE: (
        Severity.WARNING,
        "After a call that may have done its work, its function is not called with the same input under another "
        "idempotency key: of steps that take money by their names, or are undone by another.",
    ),
    SUCCEEDS: (Severity.WARNING, "At least one of all runs succeeds."),
}
"""By name, with what a broken one is."""


def severity_of(name: str) -> Severity:
    """The severity of a property: those of a test file are errors."""
    return OF_EVERY_FLOW[name][0] if name in OF_EVERY_FLOW else Severity.ERROR
