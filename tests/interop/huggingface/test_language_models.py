"""Hugging Face's GPT-2, Mamba and RWKV and ours give the same logits, there and back; all else is refused."""

import json
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from foveal.config import ModelConfig
from foveal.core.errors import UserError
from foveal.heads.decoder_lm import DecoderLM
from foveal.interop.huggingface import language_models
from foveal.interop.huggingface.gpt2 import to_hf_config
from foveal.interop.huggingface.language_models import read_language_model, write_language_model
from foveal.models.decoder import language_model
from foveal.models.mixer_settings import resolve_mixer_settings
from foveal.store.sealed import load_weights
from foveal.tasks.config import load_config

ModuleT = TypeVar("ModuleT", bound=nn.Module)

V, D, CONTEXT = 19, 16, 24
OURS: dict[str, dict[str, Any]] = {
    "gpt2": {
        "mixers": "attention",
        "attention": {"heads": 4},
        "positions": {"kind": "learned"},
        "feedforward": "mlp",
        "activation": "gelu-tanh",
        "norm": "layer",
        "residual": True,
        "tie_embeddings": True,
        "projection_bias": False,
    },
    "gemma3_text": {
        "mixers": "attention",
        "embedding_scale": True,
        "attention": {
            "heads": 4,
            "key_heads": 2,
            "head_width": 8,
            "qk_norm": True,
            "bias": False,
            "window": 5,
            "global_every": 2,
            "global_rotary_base": 300.0,
        },
        "positions": {"kind": "rotary", "rotary_base": 20.0},
        "feedforward": "geglu",
        "expansion": 3.75,
        "norm": "rms",
        "norm_placement": "both",
        "norm_epsilon": 1e-3,
        "residual": True,
        "tie_embeddings": True,
        "projection_bias": False,
    },
    "mamba": load_config("mamba").model.model_dump(),
    "rwkv": load_config("rwkv").model.model_dump(),
}
families = pytest.mark.parametrize("family", list(OURS))


def config_of(family: str, **more: object) -> ModelConfig:
    return ModelConfig.model_validate(OURS[family] | {"width": D, "layers": 3} | more)


def grown(model: ModuleT) -> ModuleT:
    """Every parameter drawn anew, large enough that a mistake shows."""
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -0.7, 0.7)
    return model.eval()


def made(config: ModelConfig) -> DecoderLM:
    return grown(language_model(config, V, CONTEXT))


def logits(model: DecoderLM, tokens: Tensor) -> Tensor:
    return model.project(model(tokens)[0])


def opened(folder: Path) -> DecoderLM:
    found = read_language_model(folder)
    model = language_model(found.config, found.vocabulary, found.context)
    load_weights(model, found.tensors, str(folder))
    return model.eval()


def theirs_of(family: str, **more: object) -> Any:
    """A small random model of Hugging Face's, far from its first weights."""
    transformers = pytest.importorskip("transformers")
    shapes: dict[str, dict[str, Any]] = {
        "gpt2": {"n_embd": D, "n_layer": 3, "n_head": 4, "n_positions": CONTEXT, "n_inner": 40},
        "gemma3_text": {
            "hidden_size": D,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "query_pre_attn_scalar": 8,
            "intermediate_size": 40,
            "max_position_embeddings": CONTEXT,
            "sliding_window": 5,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            "rms_norm_eps": 1e-3,
            "rope_parameters": {
                "full_attention": {"rope_type": "default", "rope_theta": 300.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 20.0},
            },
        },
        "mamba": {"hidden_size": D, "num_hidden_layers": 3, "state_size": 5, "conv_kernel": 3, "expand": 3},
        "rwkv": {"hidden_size": D, "num_hidden_layers": 3, "intermediate_size": 40, "rescale_every": 0},
    }
    shape = shapes[family]
    config = transformers.AutoConfig.for_model(family, vocab_size=V, **shape | more)
    return grown(transformers.AutoModelForCausalLM.from_config(config))


@torch.no_grad()
def equal(ours: DecoderLM, theirs: Any) -> None:
    tokens = torch.randint(V, (3, CONTEXT))
    expected = theirs(tokens).logits
    assert expected.std() > 0.3
    torch.testing.assert_close(logits(ours, tokens), expected, rtol=1e-5, atol=1e-5)


@families
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("size", ["5GB", "4KB"])
def test_theirs_load(family: str, tied: bool, size: str, tmp_path: Path) -> None:
    """One file or shards, tied or not."""
    theirs = theirs_of(family, tie_word_embeddings=tied)
    theirs.save_pretrained(tmp_path / "there", max_shard_size=size)
    assert (tmp_path / "there/model.safetensors.index.json").exists() == (size == "4KB")
    ours = opened(tmp_path / "there")
    assert (ours.projection.weight is ours.embedding.table) == tied
    equal(ours, theirs)


@families
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("layers", [2, 3])
def test_ours_load_there(family: str, tied: bool, layers: int, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = config_of(family, tie_embeddings=tied, layers=layers, expansion=2.5)
    ours = made(config)
    assert write_language_model(tmp_path / "out", ours, config, CONTEXT) == family
    theirs, found = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "out", output_loading_info=True
    )
    assert not found["missing_keys"]
    assert not found["unexpected_keys"]
    equal(ours, theirs.eval())
    tokens = torch.randint(V, (1, 4))
    assert theirs.generate(tokens, max_new_tokens=6, do_sample=False).shape == (1, 10)


@families
def test_out_and_in_again(family: str, tmp_path: Path) -> None:
    """Without transformers: the same config and the same bits, and a projection's bias of zeros is none."""
    config = config_of(family, projection_bias=True, dropout=0.25)
    ours = made(config)
    nn.init.zeros_(ours.projection.bias)
    write_language_model(tmp_path / "out", ours, config, CONTEXT)
    found = read_language_model(tmp_path / "out")
    assert found.config.projection_bias is False
    free = {"projection_bias": True, "dropout": 0.25}
    assert found.config.model_copy(update=free) == resolve_mixer_settings(config)
    assert (found.vocabulary, found.model_type) == (V, family)
    back = opened(tmp_path / "out")
    tokens = torch.randint(V, (2, CONTEXT))
    if family == "gemma3_text":  # its gains are stored minus 1
        torch.testing.assert_close(logits(back, tokens), logits(ours, tokens))
        return
    assert torch.equal(logits(back, tokens), logits(ours, tokens))


def test_gpt2_of_every_activation(tmp_path: Path) -> None:
    for name in ("gelu_new", "gelu", "relu", "gelu_pytorch_tanh"):
        theirs = theirs_of("gpt2", activation_function=name)
        theirs.save_pretrained(tmp_path / name)
        equal(opened(tmp_path / name), theirs)


def test_old_files_of_gpt2(tmp_path: Path) -> None:
    """Of the bare model, with the causal mask among the weights and the tied projection written out."""
    theirs = theirs_of("gpt2")
    theirs.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = {k.removeprefix("transformer."): v for k, v in safetensors.torch.load_file(path).items()}
    tensors |= {f"h.{i}.attn.bias": torch.ones(1, 1, CONTEXT, CONTEXT).tril().byte() for i in range(3)}
    tensors |= {f"h.{i}.attn.masked_bias": torch.tensor(-1e4) for i in range(3)}
    tensors |= {"lm_head.weight": tensors["wte.weight"].clone()}
    safetensors.torch.save_file(tensors, path)
    equal(opened(tmp_path), theirs)
    safetensors.torch.save_file(tensors | {"lm_head.weight": tensors["wte.weight"] + 1}, path)
    with pytest.raises(UserError, match=r"tie_word_embeddings is true, but lm_head\.weight is not"):
        read_language_model(tmp_path)


def test_rwkv_that_rescales(tmp_path: Path) -> None:
    """The file has the weights as trained; halving as it goes changes the norm's epsilon alone."""
    theirs = theirs_of("rwkv", rescale_every=2)
    theirs.save_pretrained(tmp_path)
    equal(opened(tmp_path), theirs.train())


def test_older_settings_of_gemma(tmp_path: Path) -> None:
    """The bases and the pattern of windows have other names there."""
    config = config_of("gemma3_text")
    write_language_model(tmp_path / "out", made(config), config, CONTEXT)
    path = tmp_path / "out/config.json"
    settings = json.loads(path.read_text())
    del settings["rope_parameters"], settings["layer_types"]
    older = {"rope_theta": 300.0, "rope_local_base_freq": 20.0, "sliding_window_pattern": 2}
    path.write_text(json.dumps(settings | older))
    attention = read_language_model(tmp_path / "out").config.model_dump()["attention"]
    assert attention == OURS["gemma3_text"]["attention"]


def test_half_precision_loads(tmp_path: Path) -> None:
    ours = made(config_of("mamba"))
    write_language_model(tmp_path / "out", ours, config_of("mamba"), CONTEXT)
    path = tmp_path / "out/model.safetensors"
    tensors = safetensors.torch.load_file(path)
    safetensors.torch.save_file({name: tensor.bfloat16() for name, tensor in tensors.items()}, path)
    for name, tensor in read_language_model(tmp_path / "out").tensors.items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, ours.get_parameter(name).bfloat16().float())


@pytest.mark.parametrize(
    ("family", "setting", "message"),
    [
        (
            "gpt2",
            {"model_type": "llama"},
            "model_type='llama': Foveal can't import this type; known: bert, conv",
        ),
        ("gpt2", {"model_type": None}, "model_type=None: Foveal can't import this type"),
        ("gpt2", {"model_type": ["gpt2"]}, "Foveal can't import this type"),
        (
            "gpt2",
            {"activation_function": "silu"},
            "activation_function='silu': Foveal supports only gelu_new, gelu",
        ),
        ("gpt2", {"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon=1e-06: Foveal supports only 1e-05"),
        ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights=False: Foveal supports only True"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=True"),
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention=True"),
        ("gpt2", {"n_head": 3}, "model.width=16 is not a multiple of model.attention.heads=3"),
        ("gpt2", {"n_layer": 1 << 12}, "4096 layers, but"),
        ("gpt2", {"n_layer": 2}, ".bias is not in such a model; and 9 more"),
        ("gpt2", {"n_layer": 4}, "no transformer.h.3.ln_1.weight"),
        ("gpt2", {"n_layer": 0}, "n_layer=0: expected a whole number from 1"),
        ("gpt2", {"n_embd": 10**30}, "expected a whole number from 1 to"),
        ("gpt2", {"n_embd": True}, "expected a whole number"),
        ("gpt2", {"n_embd": "x" * 9999}, "expected a whole number"),
        ("gpt2", {"n_embd": 32}, r"transformer.wte.weight is [19, 16], not [19, 32]"),
        ("gpt2", {"n_positions": 25}, "transformer.wpe.weight is [24, 16], not [25, 16]"),
        ("gpt2", {"resid_pdrop": 1}, "resid_pdrop=1: expected a number from 0, below 1"),
        ("gpt2", {"vocab_size": None}, "vocab_size=None: expected a whole number"),
        ("gpt2", {"tie_word_embeddings": 1}, "tie_word_embeddings=1: expected true or false"),
        ("gpt2", {"tie_word_embeddings": False}, "no lm_head.weight"),
        ("gemma3_text", {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping=50.0"),
        ("gemma3_text", {"attention_bias": True}, "attention_bias=True: Foveal supports only False"),
        ("gemma3_text", {"query_pre_attn_scalar": 9}, "query_pre_attn_scalar=9: Foveal supports only head"),
        ("gemma3_text", {"layer_types": ["full_attention"] * 2}, "supports only 3 layers with windows in"),
        ("gemma3_text", {"layer_types": "full_attention"}, "supports only 3 layers with windows in"),
        ("gemma3_text", {"layer_types": [1, 2, {}]}, "supports only 3 layers with windows in"),
        ("gemma3_text", {"rope_parameters": []}, "rope_parameters=[]: expected a section of settings"),
        (
            "gemma3_text",
            {"rope_parameters": {"full_attention": {"rope_type": "linear"}}},
            "rope_type='linear': Foveal supports only default",
        ),
        (
            "gemma3_text",
            {"rope_parameters": {"full_attention": {"rope_theta": -1}}},
            "rope_theta=-1: expected a number above 0",
        ),
        (
            "gemma3_text",
            {"num_key_value_heads": 3},
            "heads=4 is not a multiple of model.attention.key_heads=3",
        ),
        ("gemma3_text", {"head_dim": 7, "query_pre_attn_scalar": 7}, "need an even head width, not 7"),
        ("gemma3_text", {"rms_norm_eps": 0}, "rms_norm_eps=0: expected a number above 0"),
        ("mamba", {"use_bias": True}, "use_bias=True: Foveal supports only False"),
        ("mamba", {"use_conv_bias": False}, "use_conv_bias=False: Foveal supports only True"),
        ("mamba", {"hidden_act": "gelu"}, "hidden_act='gelu': Foveal supports only silu"),
        ("mamba", {"time_step_rank": 7}, "time_step_rank=7: Foveal supports only 1"),
        ("mamba", {"expand": 1.5}, "expand=1.5: expected a whole number"),
        ("mamba", {"expand": 1 << 20, "hidden_size": 1 << 20, "time_step_rank": None}, "overflow"),
        ("rwkv", {"attention_hidden_size": 32}, "attention_hidden_size=32: Foveal supports only 16"),
        ("rwkv", {"intermediate_size": 65}, "feed_forward.key.weight is [64, 16], not [65, 16]"),
        ("rwkv", {"layer_norm_epsilon": 1}, "layer_norm_epsilon=1: Foveal supports only 1e-05"),
    ],
)
def test_settings_that_are_not_ours(
    family: str, setting: dict[str, Any], message: str, tmp_path: Path
) -> None:
    write_language_model(tmp_path / "out", made(config_of(family)), config_of(family), CONTEXT)
    path = tmp_path / "out/config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | setting))
    with pytest.raises(UserError) as told:
        read_language_model(tmp_path / "out")
    assert message in str(told.value)
    assert len(str(told.value)) < 400


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = config_of("gpt2")
    write_language_model(tmp_path / "model", made(config), config, CONTEXT)
    return tmp_path / "model"


def refused(folder: Path) -> str:
    with pytest.raises(UserError) as told:
        read_language_model(folder)
    assert "\n" not in str(told.value)
    return str(told.value)


def test_files_that_are_missing(folder: Path, tmp_path: Path) -> None:
    assert "nothing/config.json: can't read: No such file" in refused(tmp_path / "nothing")
    weights = folder / "model.safetensors"
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({}))
    read_language_model(folder)
    weights.unlink()
    line = refused(folder)
    assert "pytorch_model.bin: pickle files are never read; convert the folder" in line
    assert "save_pretrained" in line
    (folder / "pytorch_model.bin").unlink()
    assert "model: it has no model.safetensors" in refused(folder)
    weights.mkdir()
    assert "it has no model.safetensors" in refused(folder)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"[1]", b"[" * 100_000, b"null", b'{"n": 1' + b"0" * 5000 + b"}"]
)
def test_a_config_that_is_none(folder: Path, content: bytes) -> None:
    (folder / "config.json").write_bytes(content)
    assert "config.json: " in refused(folder)


def test_every_cut_and_many_flips_of_the_weights(folder: Path) -> None:
    """A cut file is refused; one with a changed header is refused or has the tensors that were asked for."""
    path = folder / "model.safetensors"
    content = path.read_bytes()
    shapes = {name: tensor.shape for name, tensor in read_language_model(folder).tensors.items()}
    for length in (0, 1, 7, 8, 9, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        assert "model.safetensors: not a safetensors file, or cut off" in refused(folder)
    header = 8 + int.from_bytes(content[:8], "little")
    for at in range(0, header, header // 100):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with suppress(UserError):
            assert {
                name: tensor.shape for name, tensor in read_language_model(folder).tensors.items()
            } == shapes


def test_weights_of_another_kind(folder: Path) -> None:
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    for dtype in (torch.int8, torch.float8_e4m3fn, torch.bool):
        safetensors.torch.save_file({name: tensor.to(dtype) for name, tensor in tensors.items()}, path)
        assert "and quantized weights can't be imported" in refused(folder)
    path.write_bytes(pickle.dumps(tensors))
    assert "not a safetensors file" in refused(folder)


@pytest.mark.parametrize("there", ["../model.safetensors", "/etc/passwd", "a/b.safetensors", 3, None])
def test_shards_outside_the_folder(folder: Path, there: object) -> None:
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"transformer.wte.weight": there}}))
    assert "its weight_map names files that are not in this folder" in refused(folder)
    index.write_text(json.dumps({"weight_map": [1]}))
    assert "its weight_map names files that are not in this folder" in refused(folder)


def test_shards_that_are_missing(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"transformer.wte.weight": "other.safetensors"}}))
    assert "other.safetensors: can't read" in refused(folder)
    index.write_text(json.dumps({"weight_map": {"nothing": "part.safetensors"}}))
    assert "nothing is not in part.safetensors" in refused(folder)
    index.write_text(json.dumps({"weight_map": {"transformer.wte.weight": "part.safetensors"}}))
    read_language_model(folder)


@pytest.mark.parametrize(
    ("family", "setting", "message"),
    [
        ("gpt2", {"norm": "rms"}, "Hugging Face has no such gpt2: model.norm=rms is always layer there"),
        ("gpt2", {"norm_placement": "post"}, "model.norm_placement=post is always pre there"),
        ("gpt2", {"residual": False}, "model.residual=false is always true there"),
        ("gpt2", {"feedforward": "swiglu"}, "model.feedforward=swiglu is always mlp there"),
        ("gpt2", {"attention": {"heads": 4, "window": 3}}, "model.attention.window=3 is always 0 there"),
        ("gpt2", {"positions": {"kind": "rotary"}}, "model.positions.kind=rotary is always learned there"),
        (
            "gpt2",
            {"positions": {"kind": "learned", "join": "concatenate"}, "embedding_width": D // 2},
            "join",
        ),
        ("gpt2", {"mixers": "attention,lstm"}, "model.mixers=attention,lstm: Hugging Face has no such model"),
        ("gpt2", {"mixers": "mamba,attention"}, "all of one kind can be exported: attention, mamba, rwkv"),
        ("gpt2", {"mixers": "lstm"}, "model.mixers=lstm: Hugging Face has no such model"),
        ("gpt2", {"mixers": "attention,attention", "embedding_width": D}, None),
        ("gpt2", {"mixers": "attention,lstm", "layers": 1}, None),
        ("gpt2", {"mamba": {"state_size": 3}, "gru": {"reset_after": False}}, None),
        ("gemma3_text", {"norm": "layer"}, "no such gemma3_text: model.norm=layer is always rms there"),
        ("gemma3_text", {"embedding_scale": False}, "model.embedding_scale=false is always true there"),
        ("gemma3_text", {"attention": {"window": 3}}, "model.attention.qk_norm=false is always true"),
        ("gemma3_text", {"feedforward": "swiglu"}, "model.feedforward=swiglu is always geglu there"),
        ("mamba", {"feedforward": "mlp"}, "model.feedforward=mlp is always none there"),
        ("mamba", {"norm": "layer"}, "model.norm=layer is always rms there"),
        ("mamba", {"activation": "relu"}, None),
        ("rwkv", {"embedding_norm": False}, "model.embedding_norm=false is always true there"),
        ("rwkv", {"layers": 1}, "model.layers=1: transformers can't open an rwkv with fewer than two"),
        ("rwkv", {"feedforward": "none"}, "model.feedforward=none is always channel-mixing there"),
        ("rwkv", {"positions": {"kind": "sinusoidal"}}, "model.positions.kind=sinusoidal is always none"),
    ],
)
def test_models_that_are_not_theirs(
    family: str, setting: dict[str, Any], message: str | None, tmp_path: Path
) -> None:
    config = config_of(family, **{"tie_embeddings": False} | setting)
    model = made(config)
    if message is None:
        write_language_model(tmp_path / "out", model, config, CONTEXT)
        tokens = torch.randint(V, (2, CONTEXT))
        assert torch.equal(logits(opened(tmp_path / "out"), tokens), logits(model, tokens))
        return
    with pytest.raises(UserError) as told:
        write_language_model(tmp_path / "out", model, config, CONTEXT)
    assert message in str(told.value)
    assert not list(tmp_path.iterdir())


def test_a_projection_with_a_bias(tmp_path: Path) -> None:
    config = config_of("mamba", projection_bias=True)
    with pytest.raises(UserError, match=r"model\.projection_bias=true: mamba has no bias in its projection"):
        write_language_model(tmp_path / "out", made(config), config, CONTEXT)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_there(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(UserError, match="exists: name a new folder"):
        write_language_model(folder, made(config_of("gpt2")), config_of("gpt2"), CONTEXT)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_every_name_is_mapped_once() -> None:
    for family, settings in OURS.items():
        found = language_models.FAMILIES[family]
        config = ModelConfig.model_validate(settings | {"tie_embeddings": False})
        names = [
            name for _, mapping in found.tensor_mappings(config.layers, tied=False) for name in mapping.names
        ]
        assert sorted(names) == sorted(dict(language_model(config, V, CONTEXT).named_parameters()))


def test_gpt2_without_such_an_activation() -> None:
    with pytest.raises(UserError, match=r"model\.activation=silu: GPT-2 can have only .*relu"):
        to_hf_config(ModelConfig(activation="silu"), CONTEXT)
