"""Bidirectional language models, whose layers are features of other tasks (ELMo, Peters et al. 2018)."""

from foveal.core.errors import UserError
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.text_windows import TokenizedText
from foveal.generation.request import GenerateRequest
from foveal.models.encoder_registry import TokenSizes
from foveal.models.encoders.text import bidirectional_layers
from foveal.tasks.bidirectional_lm.model import BidirectionalLM
from foveal.tasks.bidirectional_lm.objective import BidirectionalLMObjective, PlainWindows
from foveal.tasks.shapes.examples import token_sizes
from foveal.tasks.shapes.text_windows import TextWindowsTask


class BidirectionalLMTask(TextWindowsTask):
    name = "bidirectional-lm"
    purpose = "Predict the next and the last token of a text, for features of words."
    preset = "bidirectional-lm"
    encoders = ("elmo",)
    has_decoder = False
    balances_experts = False
    next_command = ("inspect", "curves")
    batches = PlainWindows
    model_in_words = "bidirectional language model: predict the next token and the one before"

    @property
    def source_sizes(self) -> TokenSizes:
        return token_sizes(self.config, self.processor)

    @property
    def row_size(self) -> int | None:  # type: ignore[override]
        return None

    def new_model(self) -> BidirectionalLM:
        return self._model_for_vocab(self.processor.size)

    def example_model(self) -> BidirectionalLM:
        return self._model_for_vocab(self.planned_sizes()["vocabulary"])

    def _model_for_vocab(self, tokens: int) -> BidirectionalLM:
        vocabulary = SpecialTokens(tokens).vocab_size
        return BidirectionalLM(bidirectional_layers(self.config.model.encoder, vocabulary))

    def objective(self, preview_examples: TokenizedText | None = None) -> BidirectionalLMObjective:
        return BidirectionalLMObjective(self.model, self.processor.size)

    def check_generate(self, request: GenerateRequest) -> None:
        raise UserError(
            f"{request.run} writes no text: its layers are features of other tasks, as in "
            f"foveal train DATA --from {request.run} --task TASK training.freeze=encoder"
        )
