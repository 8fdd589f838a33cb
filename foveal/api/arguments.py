"""The arguments of functions of the Python interface: one or several, and names that there are not."""

from collections.abc import Iterable, Mapping, Sequence
from inspect import Parameter
from typing import Any

from foveal.api.python_words import PythonWords
from foveal.config import suggest
from foveal.config.files import other_word_advice
from foveal.core.errors import UserError

OTHER_NAMES = {
    **dict.fromkeys(("batch_size", "batchsize"), "batch"),
    **dict.fromkeys(("max_new_tokens", "max_tokens", "max_length", "length"), "tokens"),
    **dict.fromkeys(("learning_rate", "max_lr"), "lr"),
    **dict.fromkeys(("num_epochs", "n_epochs", "max_epochs", "epoch", "num_train_epochs"), "epochs"),
    **dict.fromkeys(("random_state", "random_seed"), "seed"),
    **dict.fromkeys(("val", "validation", "validation_data", "eval_dataset", "val_loader"), "valid"),
    **dict.fromkeys(("output_dir", "out_dir", "output", "name"), "run"),
    **dict.fromkeys(("loggers", "logger"), "log"),
    **dict.fromkeys(("verbose", "silent"), "quiet"),
    **dict.fromkeys(("prompts", "text"), "prompt"),
    **dict.fromkeys(("num_samples", "n", "num_return_sequences"), "samples"),
    **dict.fromkeys(("num_beams", "beam_size"), "beam"),
    **dict.fromkeys(("stop_sequences", "stop_strings"), "stop"),
    **dict.fromkeys(("top_k", "k"), "top"),
    **dict.fromkeys(("loss", "loss_fn", "criterion"), "objective"),
    **dict.fromkeys(("train_loader", "train_dataset", "data"), "train"),
    **dict.fromkeys(("model",), "module"),
    **dict.fromkeys(("config", "options"), "settings"),
}
"""Arguments by the names that other programs give them."""
UNNAMED = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class ArgumentError(UserError, TypeError):
    """A function was called with an argument that it does not have."""


def one_or_several(values: str | Iterable[str]) -> tuple[str, ...]:
    """Return one text or several as a tuple."""
    return (values,) if isinstance(values, str) else tuple(values)


def check_arguments(words: PythonWords, given: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Check that a function has the arguments that it is called with.

    Raises: ArgumentError: it has no argument of a name, or too many values have no name.
    """
    parameters = words.parameters
    if not words.takes_any:
        for name in named:
            if name not in parameters:
                raise ArgumentError(f"{words.name}: there is no argument {name}{_advice(words, name)}")
    unnamed = [name for name, each in parameters.items() if each.kind in UNNAMED]
    if len(given) > len(unnamed):
        shown = [name for name in unnamed if name != "self"]
        count = len(given) - (len(unnamed) - len(shown))
        pair = f"; inputs and their labels are one pair: {words.name}((X, y))" if "data" in shown else ""
        others = ", ".join(shown) if shown else "none"
        raise ArgumentError(
            f"{words.name}: {count} values without a name, and it takes {len(shown)} ({others}): name the "
            f"others{pair}"
        )


def _advice(words: PythonWords, name: str) -> str:
    """Return a hint for an argument that there is not."""
    other = OTHER_NAMES.get(name.lower())
    if other in words.parameters:
        return f"; did you mean {other}?"
    if "settings" in words.parameters and (advice := other_word_advice(name)):
        return words.message(advice)
    return suggest(name, [known for known in words.parameters if known != "self"])
