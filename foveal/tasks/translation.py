"""From one text to another: translation, spelling to sound, commands to moves."""

from foveal.config import Config
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.text import text_pairs
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.text_pairs import TextPairProcessor
from foveal.models.decoder import decoder
from foveal.models.encoder import EncoderWithHead, text_encoder
from foveal.tasks.base import TaskSummary
from foveal.tasks.examples import default_vocab_size
from foveal.tasks.text_target import SequenceToSequenceTask


class TextToTextTask(SequenceToSequenceTask):
    def __init__(self) -> None:
        super().__init__(text_pairs)

    def model(self, config: Config, processor: TextPairProcessor) -> EncoderWithHead:
        return self._model_for_vocabs(config, processor.source.size, processor.target.size)

    def model_of_default_size(self, config: Config) -> EncoderWithHead:
        return self._model_for_vocabs(config, *2 * [default_vocab_size(config)])

    def _model_for_vocabs(self, config: Config, source: int, target: int) -> EncoderWithHead:
        longest = config.data.max_length
        encoder = text_encoder(config.model.encoder, SpecialTokens(source).vocab_size, longest)
        shared = encoder.embedding if config.data.shared_vocabulary else None
        head = decoder(config.model, SpecialTokens(target).vocab_size, longest, encoder.width, shared)
        return EncoderWithHead(encoder, head)

    def preview_title(self, source: str) -> str:
        return source

    def summarize(
        self, config: Config, data: PreparedData[TextPairProcessor, SplitData[Examples]]
    ) -> TaskSummary:
        source, target = data.processor.source, data.processor.target
        names = f"{source.size:,} {source.kind} tokens to {target.size:,}"
        if data.processor.shared_vocabulary:
            names = f"{source.size:,} {source.kind} tokens of both sides together"
        return TaskSummary(
            "pairs", f"{config.task.name}: {names}", SpecialTokens(target.size).vocab_size, "target tokens"
        )
