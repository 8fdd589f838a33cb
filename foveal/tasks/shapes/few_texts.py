"""A plain word before few rows with texts are trained on: that they will not do, and what would."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

MAX_FEW_TEXTS = 50
"""Different texts at most that a classifier could choose from, if each occurs at least twice."""
MIN_USES = 10
"""Uses of a word on average, from which words are so few that a model learns them from few rows."""


@dataclass(frozen=True)
class FewTexts:
    """From how many rows a task learns to write texts of many words, and what would do with fewer."""

    enough_rows: int
    rows: str
    """What the rows are, such as recordings."""
    evidence: str
    """What was reached with how many rows."""
    instead: str
    """What would do. `{data}` is the name of DATA."""

    def advice(self, data: str, texts: Sequence[str], classify: str) -> str:
        """Return the advice for training on the texts of DATA; empty if there is nothing to say.

        `classify` are the options of a training that predicts the text as a label; empty if there is none.
        """
        if not 0 < len(texts) < self.enough_rows:
            return ""
        name, counts = shlex.quote(data), Counter(texts)
        words = [word for text in texts for word in text.split()]
        uses = len(words) / max(1, len(set(words)))
        if classify and 1 < len(counts) < MAX_FEW_TEXTS and min(counts.values()) > 1:
            return (
                f"{len(texts):,} {self.rows} have only {len(counts):,} different texts, among which a "
                f"classifier chooses better than a model that writes: foveal train {name} {classify}"
            )
        if uses >= MIN_USES:
            return ""
        return (
            f"{len(texts):,} {self.rows} are too few to learn to write such texts: a word occurs {uses:.1f} "
            f"times on average. {self.evidence}. What would do: {self.instead.format(data=name)}"
        )
