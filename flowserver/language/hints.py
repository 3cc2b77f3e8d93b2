"""Hints: the next step that a finding suggests, each with its own template.

A test applies each to a definition that shows it and expects one finding fewer, so no module writes hints of its own.
"""

from enum import StrEnum


class Hint(StrEnum):
    """The templates; a name in braces is filled in by `of`."""

    # Expressions and values
    DID_YOU_MEAN = "did you mean `{name}`?"
    DID_YOU_MEAN_ROOT = "did you mean `${name}`?"
    IN_QUOTES = "write it in quotes if it is meant as a text"
    WITHOUT_QUOTES = "write it without quotes"
    BOOLEAN = "write {word}, without quotes"
    FOR_EXAMPLE = "for example `{name}: {example}`"
    LIST_OF_ONE = "write a list: `[{text}]`"
    BRACKETS_AROUND = "write a list: put `[` and `]` around it, or begin every entry with `- `"
    LEAVE_OUT = "leave it out, or give it a value"
    BELONGS_TO = "`{name}` belongs to {owners}"
    NUMBER_IN_QUOTES = "write it in quotes if it is a text"
    INSTANT = "for example 2030-01-01T00:00:00Z"
    THROUGH_INPUT = (
        "write `$.{key}`, a path into the step's input, with `inputMappings: [{{target: {key}, source: {text}}}]`"
    )

    # Texts that are constants
    WHOLE_SOURCE = "a reference is a whole source: `$input`, `$local` or `$context` and a path"
    SELECT_FROM_INPUT = "parameters select from the step's input with `$` or `$.key`"
    PLAIN_KEY = "`{name}` is a plain key of the step's input, without `$`"
    CONSTANT = "`{name}` is a constant; what an error left is in the step's input"

    # Steps and flows
    STEP_NAME = "1-128 letters, digits, `_` or `-`, beginning with a letter or `_`"
    STEP_TYPES = "the types are {types}"
    ANOTHER_LIST = "the step in line {line} is in another list, and a goto reaches siblings only"
    ADD_DEFAULT = "add a `default` to be explicit"
    PAUSE_OR_EXIT = "add a wait step, or a way out"
    COLLECTED = "its `$local` is a list, one item per run"
    VERSION = "write `version: {version}`"
    OLDER_DIALECT = "supported is `version: v1`, `type: flow`"

    # Tasks
    PATTERNS = "the patterns are {patterns}"
    OFFERED_PATTERNS = "it runs with {patterns}"
    CALLBACK_ONLY = "only `pattern: waitForCallback` gives a task one"
    FUNCTION_INPUT = "a function gets the step's input: use `inputMappings`"
    FLOW_INPUT = "a flow gets its `Input`"
    SENT_BODY = "what is sent is the `MessageBody`"
    PUBLISHED_BODY = "what is published is the `MessageBody`"
    FORMS = "write {forms}"
    NO_OWNER = "leave both empty: {resource}"
    NO_BRACES = "write your own names, without braces: {example}"
    QUEUE_OR_TOPIC_NAME = "a name has 1 to 120 letters, digits or hyphens, and begins with a letter or a digit"
    REF = "write !Ref service/function"
    REF_ELSEWHERE = "a deployment tool replaces `!Ref`; write the whole resourceArn"
    MERGE_KEY = "repeat the attributes, or put an alias in place of the whole value"

    # YAML
    TABS = "YAML indents with blanks, not with tabs"
    QUOTE = "write this text in quotes: {text}"
    QUOTE_BRACKETS = "inside `{{…}}` and `[…]` a text with brackets needs quotes: {text}"
    OWN_LINE = "write each attribute on a line of its own: begin a new line before `{name}`, indented like `{other}`"
    INDENT = "indent this line by {blanks} blanks, like {other} in line {line}"
    NO_INDENT = "remove the blanks before the first word of line {line}"
    BLANK_AFTER_COLON = "write a blank after the colon: {text}"
    LIST_BELOW = "begin the list on a line of its own, below {text}"
    NOT_CLOSED = "{mark} in line {line}, column {column} is not closed: add {closing}"
    NOT_OPENED = "{mark} closes nothing: remove it, or write the text in quotes"

    def of(self, **words: object) -> str:
        """The hint with its words."""
        return self.format(**words)
