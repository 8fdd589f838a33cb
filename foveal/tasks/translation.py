"""From one text to another: translation, spelling to sound, commands to moves."""

from foveal.config import Config
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import Prepared
from foveal.data.core.split_data import Part
from foveal.data.text import text_pairs
from foveal.data.text.special_tokens import Marks
from foveal.data.text.text_pairs import PairInputs
from foveal.models.decoder import decoder
from foveal.models.encoder import Encoded, text_encoder
from foveal.tasks.base import Described
from foveal.tasks.examples import usual_vocabulary
from foveal.tasks.text_target import WritingKind


class PairKind(WritingKind):
    def __init__(self) -> None:
        super().__init__(text_pairs)

    def model(self, config: Config, inputs: PairInputs) -> Encoded:
        return self._of_sizes(config, inputs.source.size, inputs.target.size)

    def outline(self, config: Config) -> Encoded:
        return self._of_sizes(config, *2 * [usual_vocabulary(config)])

    def _of_sizes(self, config: Config, source: int, target: int) -> Encoded:
        longest = config.data.longest
        encoder = text_encoder(config.model.encoder, Marks(source).vocabulary, longest)
        shared = encoder.embedding if config.data.joint else None
        head = decoder(config.model, Marks(target).vocabulary, longest, encoder.width, shared)
        return Encoded(encoder, head)

    def title(self, source: str) -> str:
        return source

    def describe(self, config: Config, data: Prepared[PairInputs, Part[Examples]]) -> Described:
        source, target = data.inputs.source, data.inputs.target
        names = f"{source.size:,} {source.kind} tokens to {target.size:,}"
        if data.inputs.joint:
            names = f"{source.size:,} {source.kind} tokens of both sides together"
        return Described(
            "pairs", f"{config.task.name}: {names}", Marks(target.size).vocabulary, "target tokens"
        )
