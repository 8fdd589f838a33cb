"""The three ways to answer a question about an image: a label, a text, one of the row's own choices."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.core.classes import LABELS_FILE, class_names, class_names_to_json, load_class_names
from foveal.data.core.examples import Column, RaggedArray
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.core.rows import Row
from foveal.data.text.length_limit import LENGTH_LIMIT_FILE, LengthLimit, load_length_limit
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.tokenizers import TOKENIZER_FILE, TokenIds, Tokenizer, load_tokenizer, make_tokenizer
from foveal.tasks.vqa.vqa_examples import VQAFormat, VQAProcessor, load_vqa_fields, make_vqa_fields

IGNORE_INDEX = -100
"""The number of an answer that training did not have; torch's cross-entropy leaves it out."""


@dataclass(frozen=True)
class VQAClassificationProcessor(VQAProcessor):
    """And the known answers, in the order of their numbers."""

    labels: tuple[str, ...]

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {label: number for number, label in enumerate(self.labels)}

    def files(self) -> dict[str, bytes]:
        return super().files() | {LABELS_FILE: class_names_to_json(self.labels)}


class VQAClassificationFormat(VQAFormat):
    """One of the answers that training has."""

    def make_processor(
        self, data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
    ) -> VQAClassificationProcessor:
        answers, alike = (row.fields["answer"] for row in rows), "all questions to train on have the answer"
        labels = class_names(data, answers, alike, " (data.answer=NAME is the column)", reused.labels)
        if len(labels) > len(rows) // 2 and len(rows) > 4:
            raise UserError(
                f"{data}: {len(labels):,} answers to {len(rows):,} questions, too many to choose among: "
                "have them written (--task vqa-generate)"
            )
        return VQAClassificationProcessor(*make_vqa_fields(rows, config, reused), labels)

    def load_processor(self, folder: Path) -> VQAClassificationProcessor:
        return VQAClassificationProcessor(*load_vqa_fields(folder), load_class_names(folder / LABELS_FILE))

    def reference(self, row: Row, processor: VQAClassificationProcessor, config: DataConfig) -> int:
        """An answer never seen can't be right, and has no loss."""
        return processor.numbers.get(row.fields["answer"], IGNORE_INDEX)

    def columns(self, reference: list[int]) -> dict[str, Column]:
        return {"label": np.array(reference, np.int64)}


@dataclass(frozen=True)
class VQAGenerationProcessor(VQAProcessor):
    """And the tokenizer of the answers; `length_limit` says how long those may become."""

    target: Tokenizer
    length_limit: LengthLimit

    def files(self) -> dict[str, bytes]:
        text = {
            f"target/{TOKENIZER_FILE}": self.target.to_json().encode(),
            LENGTH_LIMIT_FILE: self.length_limit.to_json().encode(),
        }
        return super().files() | text


class VQAGenerationFormat(VQAFormat):
    """Written token by token."""

    def make_processor(
        self, data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
    ) -> VQAGenerationProcessor:
        answers = [row.fields["answer"] for row in rows]
        kind = config.tokenizer if config.target_tokenizer == "same" else config.target_tokenizer
        target = make_tokenizer(kind, config.vocab_size, answers)
        room = LengthLimit.from_texts(target, answers, config.max_length)
        return VQAGenerationProcessor(*make_vqa_fields(rows, config, reused), target, room)

    def load_processor(self, folder: Path) -> VQAGenerationProcessor:
        return VQAGenerationProcessor(
            *load_vqa_fields(folder), load_tokenizer(folder / "target"), load_length_limit(folder)
        )

    def reference(self, row: Row, processor: VQAGenerationProcessor, config: DataConfig) -> TokenIds | str:
        tokens = np.append(
            processor.target.encode_known(row.fields["answer"])[0], SpecialTokens(processor.target.size).eos
        )
        if len(tokens) > config.max_length:
            return f"{len(tokens)} tokens, and data.max_length={config.max_length}: raise it to use the row"
        return tokens

    def columns(self, reference: list[TokenIds]) -> dict[str, Column]:
        return {"target": RaggedArray.from_rows(reference)}


class VQAMultipleChoiceFormat(VQAFormat):
    """One of the choices that each row brings."""

    question_columns = ("question", "choices")

    def make_processor(
        self, data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
    ) -> VQAProcessor:
        return VQAProcessor(*make_vqa_fields(rows, config, reused))

    def load_processor(self, folder: Path) -> VQAProcessor:
        return VQAProcessor(*load_vqa_fields(folder))

    def reference(self, row: Row, processor: VQAProcessor, config: DataConfig) -> int | str:
        answer, choices = row.fields["answer"], row.fields["choices"]
        if answer not in choices:
            return f"the answer '{answer}' is not among the choices; mend the row"
        return int(choices.index(answer))

    def columns(self, reference: list[int]) -> dict[str, Column]:
        return {"label": np.array(reference, np.int64)}
