"""The names of steps, from the text of a definition."""

import yaml


def names_of(definition: str) -> list[str]:
    """The names of the flow's own steps, in order; none if the definition cannot be read."""
    try:
        steps = yaml.safe_load(definition)["steps"]
        return [str(step["name"]) for step in steps]
    except (yaml.YAMLError, TypeError, KeyError):
        return []
