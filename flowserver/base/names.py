"""Names that users choose and resource names (ARNs) that definitions hold."""

import re

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}\Z")
"""Flow, execution, schedule and step names: 1-128 of letters, digits, `_`, `-`, not starting with a digit or `-`."""

NAME_RULE = "must be 1-128 letters, digits, '_' or '-', and not start with a digit or '-'"
"""The rule as messages say it, after the name of what breaks it."""


def is_name(text: str) -> bool:
    """Whether `text` follows the rule for flow, execution, schedule and step names."""
    return NAME.match(text) is not None
