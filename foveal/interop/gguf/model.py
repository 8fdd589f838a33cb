"""A language model in a GGUF file."""

from foveal.data.text.tokenizers import Tokenizer
from foveal.interop.gguf import gemma3
from foveal.interop.gguf.file import GGUFFile
from foveal.interop.gguf.tokenizer import read_tokenizer
from foveal.interop.huggingface.hf_config import HFConfig
from foveal.interop.huggingface.language_models import ImportedTextModel, convert_language_model


def read_gguf_model(file: GGUFFile) -> tuple[ImportedTextModel, Tokenizer]:
    """Return the model of a file, with weights in float32, and its tokenizer.

    Raises: UserError: the file has another architecture, differs from Foveal's models, or is damaged.
    """
    architecture = file.setting("general.architecture")
    if architecture != gemma3.ARCHITECTURE:
        raise file.error(
            f"general.architecture={str(architecture)[:40]!r}: Foveal reads GGUF files of "
            f"{gemma3.ARCHITECTURE} alone; give its Hugging Face folder"
        )
    tokenizer = read_tokenizer(file)
    settings = HFConfig(gemma3.hf_settings(file, tokenizer.size), file.path)
    tensors = {name: file.tensor(name) for name in file.stored}
    return convert_language_model(gemma3.FAMILY, settings, tensors, file.path), tokenizer
