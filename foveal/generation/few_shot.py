"""Few-shot prompts: examples of a task, and then a new source, whose target the model writes (Brown et al.
2020)."""

from collections.abc import Sequence
from dataclasses import dataclass

from foveal.core.errors import UserError

DEFAULT_TEMPLATE = r"input: {source}\noutput: {target}\n\n"
SOURCE, TARGET = "{source}", "{target}"


@dataclass(frozen=True)
class PromptTemplate:
    """The text of an example: `before`, its source, `between`, its target, and `after`."""

    before: str
    between: str
    after: str

    @classmethod
    def parse(cls, text: str) -> "PromptTemplate":
        r"""Return the template of a text with {source} and {target}, where \n is a line break.

        Raises: UserError: the text does not have each of them once, the source first.
        """
        text = text.replace(r"\n", "\n").replace(r"\t", "\t")
        before, _, rest = text.partition(SOURCE)
        between, _, after = rest.partition(TARGET)
        if text.count(SOURCE) != 1 or text.count(TARGET) != 1 or not between:
            raise UserError(
                f"--template: it needs {SOURCE} and then {TARGET}, each once and with words between them, "
                f"such as '{DEFAULT_TEMPLATE}'"
            )
        return cls(before, between, after)

    def example(self, source: str, target: str) -> str:
        return f"{self.before}{source}{self.between}{target}{self.after}"

    def query(self, source: str) -> str:
        """Return the start of an example whose target is to be written.

        Spaces before the target are left out: subword tokens begin with their space.
        """
        return f"{self.before}{source}{self.between.rstrip(' ')}"


@dataclass(frozen=True)
class FewShotPrompt:
    """The examples that stand before a source, each a source and its target, and their template."""

    examples: tuple[tuple[str, str], ...]
    template: PromptTemplate

    def prompt(self, source: str) -> str:
        """Return the prompt for a new source."""
        examples = (self.template.example(*each) for each in self.examples)
        return "".join(examples) + self.template.query(source)

    @property
    def targets(self) -> Sequence[str]:
        """The targets of the examples."""
        return [target for _, target in self.examples]

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts at which a target ends: the end of its line, and what follows a target."""
        after = self.template.after.strip()
        return ("\n", after) if after else ("\n",)
