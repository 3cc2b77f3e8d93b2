"""YAML, for `-o yaml` and for files that are applied."""

import re
from pathlib import Path
from typing import Any, Final

import yaml

from flowserver.base.yaml_files import YamlFile, YamlFileInvalid, read_yaml
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks; what is there twice is written twice, without anchors."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


_YAML_LINE_ENDS: Final = re.compile("[\x85\u2028\u2029]")
"""They end lines in YAML 1.1 and not in 1.2, and many programs split text there: they are written as escapes."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _YAML_LINE_ENDS.search(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def yaml_text(document: Any) -> str:
    """The document, in the order of its fields."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def read_mapping(file: Path) -> YamlFile:
    """A YAML file whose content is a mapping; raises CommandFailed if it holds none."""
    try:
        found = read_yaml(file)
    except YamlFileInvalid as error:
        raise CommandFailed(str(error), ExitCode.USAGE) from None
    if not isinstance(found.content, dict):
        raise CommandFailed(f"{file} holds no mapping", ExitCode.USAGE)
    return found


def step_names(definition: str) -> list[str]:
    """The names of the flow's own steps, in order; none if the definition cannot be read."""
    try:
        steps = yaml.safe_load(definition)["steps"]
        return [str(step["name"]) for step in steps]
    except (yaml.YAMLError, TypeError, KeyError):
        return []
