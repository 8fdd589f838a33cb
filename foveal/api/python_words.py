"""Messages in words of Python: `--top 3` as `top=3`, and `foveal resume RUN` as `run.resume()`."""

import inspect
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

ARGUMENTS = {"from": "start_from"}
"""Arguments whose options have another name."""
SHORT_NAMES = {
    "data.text": "text",
    "data.source": "text",
    "data.label": "label",
    "data.target": "target",
    "optimizer.lr": "lr",
    "training.seed": "seed",
    "training.budget": "budget",
}
"""Settings that arguments name."""
OF_A_RUN = ("device", "ranks")
"""Arguments of the function that opened a run, or of the class that trains it."""
TAKES_NAME = ("from", "model", "task", "device", "hardware", "pretrained", "log")
"""Options whose value may be any word."""
VALUE = r"'[^']*'|\"[^\"]*\"|[A-Z]+(?![\w'])|[\w+-]*[\d./][\w./+-]*(?<![.])"
OPTION = re.compile(
    rf"(?<![\w-])--(?:(?P<named>{'|'.join(TAKES_NAME)}) (?P<word>(?!and\b|or\b|to\b)[\w./+:-]*\w)|"
    rf"(?P<name>[a-z][a-z-]*[a-z])(?: (?P<value>{VALUE}))?)(?![\w-])"
)
SETTING = re.compile(
    r"(?P<fact>^|\bsince |\band )?(?:\bset )?(?<![\w.\"])"
    r"(?P<key>(?:data|model|optimizer|schedule|training|task)(?:\.\w+)+)="
    r"(?P<value>[^\s;:,?)]+(?:,[^\s;:,?)]+)*)"
)
"""A setting with its value, after words that tell a fact, or that advise to set it."""
COMMAND = re.compile(
    r"\bfoveal (?P<name>train|resume|predict|evaluate|generate|inspect)\b(?P<rest>[^\n;:)]*)"
)
TOKEN = re.compile(r" ('[^']*'|\"[^\"]*\"|[^\s,]+)")
PLACEHOLDERS = ("N", "RUN", "DATA", "VALUE", "TASK")
"""Words that stand for any value, which is no text."""
FILES_OF_RESULTS = ("inspect", "predict")
"""Commands that write their result to `--out`; methods return it."""


class PythonWords:
    """Says messages of the command line in the words of a function of the Python interface."""

    def __init__(self, function: Callable[..., Any]):
        self.parameters = inspect.signature(function).parameters
        """The arguments of the function, by name."""
        self.takes_any = any(each.kind is each.VAR_KEYWORD for each in self.parameters.values())
        """Whether the function takes any named argument."""
        owner, _, name = function.__qualname__.rpartition(".")
        self.is_method = bool(owner) and name != "__init__"
        """Whether the function is a method of a run."""
        self.name = f"run.{name}" if self.is_method else f"foveal.{owner or name}"
        """The function, as users call it."""

    def message(self, text: str) -> str:
        """Return the message of an error in words of Python."""
        return self._reword(text, "run" if self.is_method else "")

    def log_line(self, text: str) -> str:
        """Return a line of the log in words of Python. The run that a function returns is called `run`."""
        return self._reword(text, "run")

    def _reword(self, text: str, run: str) -> str:
        text = COMMAND.sub(lambda match: _call(match["name"], match["rest"], run), text)
        return SETTING.sub(self._setting, OPTION.sub(self._option, text))

    def _option(self, match: re.Match[str]) -> str:
        option, value = match["named"] or match["name"], match["word"] or match["value"]
        name = _argument(option)
        if name == "trust_plugin":
            return "trust_plugin=True"
        if name not in self.parameters and name not in OF_A_RUN and not self.takes_any:
            return match[0]
        return name if value is None else f"{name}={_literal(value)}"

    def _setting(self, match: re.Match[str]) -> str:
        fact, short = match["fact"], SHORT_NAMES.get(match["key"])
        if short in self.parameters:
            return f"{fact or ''}{short}={_literal(match['value'])}"
        if "settings" not in self.parameters or fact is not None:
            return match[0]
        return f'settings={{"{match["key"]}": {_literal(match["value"])}}}'


def _call(command: str, rest: str, run: str) -> str:
    """Return a command with the words after it as a call. `run` is the variable of the run, if any."""
    tokens = _Tokens(rest)
    if command == "train":
        subject = "foveal.train"
    else:
        path = tokens.take(lambda token: _is_placeholder(token) or Path(_unquoted(token)).is_dir())
        subject = f"{run or 'run'}.{command}"
        if path and not run and not _is_placeholder(path):
            subject = f'foveal.Run("{_unquoted(path)}").{command}'
        if not path:
            return subject + rest
    dropped = ("plugin", "trust-plugin", *(("out",) if command in FILES_OF_RESULTS else ()))
    arguments = list(tokens.arguments(command == "inspect", dropped))
    if command == "train" and not arguments:
        return subject + rest
    return f"{subject}({', '.join(arguments)}){tokens.rest}"


class _Tokens:
    """The words after a command, taken one after another while they are its arguments."""

    def __init__(self, rest: str):
        self.rest = rest

    def take(self, is_wanted: Callable[[str], bool]) -> str:
        """Take the next word if it is wanted; else return an empty text."""
        match = TOKEN.match(self.rest)
        if match is None or not is_wanted(match[1]):
            return ""
        self.rest = self.rest[match.end() :]
        return match[1]

    def arguments(self, takes_word: bool, dropped: Collection[str]) -> Iterator[str]:
        """Take the arguments, as those of Python, but for `dropped` options. `takes_word` says that the first
        may be any word."""
        if takes_word and (word := self.take(lambda token: bool(re.fullmatch(r"[a-z-]*[a-z]", token)))):
            yield _literal(word)
        while token := self.take(lambda token: token.startswith("--") or _is_value(token) or "=" in token):
            key, _, setting = token.partition("=")
            if token.startswith("--"):
                option = token.removeprefix("--")
                named = option in TAKES_NAME
                value = self.take(lambda token, named=named: named or _is_value(token))  # type: ignore[misc]
                if option not in dropped:
                    yield f"{_argument(option)}={_literal(value) if value else True}"
            elif key in SHORT_NAMES:
                yield f"{SHORT_NAMES[key]}={_literal(setting)}"
            elif setting:
                yield f'settings={{"{key}": {_literal(setting)}}}'
            else:
                yield _literal(token)


def _argument(option: str) -> str:
    return ARGUMENTS.get(option, option.replace("-", "_"))


def _is_placeholder(token: str) -> bool:
    return bool(re.fullmatch(r"[A-Z]+", token))


def _is_value(token: str) -> bool:
    return bool(re.fullmatch(VALUE, token)) or Path(_unquoted(token)).exists()


def _unquoted(token: str) -> str:
    return token[1:-1] if token[:1] in ("'", '"') else token


def _literal(value: str) -> str:
    """Return a word of a command as a value of Python."""
    if value in PLACEHOLDERS or re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", value):
        return value
    return {"true": "True", "false": "False"}.get(value, f'"{_unquoted(value)}"')
