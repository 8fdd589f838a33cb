"""Presets can be compared: those of one mixer each have about a million parameters."""

import re

import pytest
import torch

from foveal.config import ConfigError, preset_names
from foveal.layers.mixers.registry import mixer_specs
from foveal.layers.mixers.self_attention import AttentionSpec
from foveal.models.decoder import language_model
from foveal.models.mixer_settings import settings_of
from foveal.studies.plan.planned_model import planned_model, sized_task
from foveal.studies.plan.published import all_published
from foveal.tasks.config import load_config
from foveal.tasks.registry import all_tasks, task_of
from tests.support.command_line import succeed
from tests.support.trained_presets import count_parameters, trained_presets

COMPARED = {*(name for name, spec in mixer_specs().items() if not spec.reads_memory), "moe"}


@pytest.mark.parametrize("name", sorted(COMPARED))
def test_about_a_million_parameters(name):
    config = load_config(name)
    assert config.model.mixers == {"moe": "attention"}.get(name, name)
    with torch.device("meta"):
        model = language_model(config.model, 65, config.data.context_length)
    assert 1.0e6 <= sum(parameter.numel() for parameter in model.parameters()) <= 1.1e6


def test_the_others_are_few():
    models = {name for name in trained_presets() if load_config(name).task.name == "language-model"}
    assert models - COMPARED == {"demo", "min-char-rnn", "ngram-lstm"}


@pytest.mark.parametrize("name", [name for name, model in all_published().items() if model.parameters])
def test_published_models_have_their_published_parameters(name):
    """The count rounds to the published figure, or the table says why not."""
    published, counted = all_published()[name], planned_parameters(name)
    assert published.parameters == pytest.approx(counted, rel=0.06)
    is_rounded = published.parameters == rounded_as(published.parameters, counted)
    assert published.difference.startswith("rounded") == is_rounded
    lecture = None if name.startswith("vit") else published.parameters
    assert published.lecture == (1_500_000_000 if name == "gpt2-xl" else lecture)
    assert name not in trained_presets()


def planned_parameters(name, *settings):
    """Return the count that `foveal plan` shows."""
    model = planned_model(sized_task(task_of(load_config(name, settings)), {}))
    return sum(weight.numel() for weight in model.parameters())


def rounded_as(figure, counted):
    """Return a count with as many digits as a figure."""
    unit = 10 ** (len(str(figure)) - len(str(figure).rstrip("0")))
    return unit * round(counted / unit)


@pytest.mark.parametrize("name", [name for name in all_published() if name.startswith("gpt2")])
def test_figures_of_gpt2_have_the_vocabulary_of_the_first_gpt(name):
    published, width = all_published()[name], load_config(name).model.width
    assert "40,478 tokens" in published.difference
    counted = planned_parameters(name) - (50_257 - 40_478) * width
    assert published.parameters == rounded_as(1_000_000, counted)


def test_figures_of_vision_transformers_have_other_heads_and_patches():
    head = 1000 * 768 + 1000
    assert round(planned_parameters("vit-base-16") - head, -5) == 85_800_000
    assert round(planned_parameters("vit-large-16", "model.encoder.patch_size=32"), -5) == 306_500_000


def test_a_model_that_is_not_trained_has_a_published_size():
    """No preset is a rumor. `moe-8x7b` has a test of its own."""
    assert {*preset_names()} - {*trained_presets()} - {*all_published()} == {"moe-8x7b"}


@pytest.mark.parametrize(
    ("name", "count"), [("transformer-base", 63_084_032), ("transformer-big", 214_248_448)]
)
def test_the_first_transformers_have_six_layers_in_the_encoder_and_six_in_the_decoder(name, count):
    """Vaswani et al. 2017, table 3, with 37,000 tokens for both languages. Twelve blocks of a decoder alone
    are too few parameters, and a width of 512 has no 6 heads."""
    model = load_config(name).model
    assert (model.layers, model.encoder.layers) == (6, 6)
    assert count_parameters(name) == count
    heads = settings_of(model, AttentionSpec).heads
    alone = f"layers=12 width={model.width} attention.heads={heads} tie_embeddings=true projection_bias=false"
    sizes = ["data.tokenizer=bpe", "data.vocab_size=37000", *(f"model.{each}" for each in alone.split())]
    published = all_published()[name].parameters
    assert published is not None
    assert count_parameters("attention", *sizes) < 0.9 * published
    with pytest.raises(ConfigError, match=r"width=512 is not a multiple of model\.attention\.heads=6"):
        load_config("transformer-base", ["model.attention.heads=6"])


@pytest.mark.parametrize("name", ["gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"])
def test_counts_of_gpt2_are_those_of_hugging_face(name):
    """GPT2LMHeadModel, with the published sizes."""
    transformers = pytest.importorskip("transformers")
    model = load_config(name).model
    heads = settings_of(model, AttentionSpec).heads
    settings = transformers.GPT2Config(n_layer=model.layers, n_embd=model.width, n_head=heads)
    with torch.device("meta"):
        theirs = transformers.GPT2LMHeadModel(settings)
    assert count_parameters(name) == sum(weight.numel() for weight in theirs.parameters())


ROBERTA = {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1}


@pytest.mark.parametrize(
    ("name", "theirs", "sizes"),
    [
        ("bert-base", "BertForMaskedLM", {}),
        ("bert-large", "BertForMaskedLM", {}),
        ("roberta-large", "RobertaForMaskedLM", ROBERTA),
        ("vit-base-16", "ViTForImageClassification", {"num_labels": 1000}),
        ("vit-large-16", "ViTForImageClassification", {"num_labels": 1000}),
        ("vit-huge-14", "ViTForImageClassification", {"num_labels": 1000, "patch_size": 14}),
    ],
)
def test_counts_of_encoders_are_those_of_hugging_face(name, theirs, sizes):
    """A vision Transformer has the classes of ImageNet."""
    transformers = pytest.importorskip("transformers")
    encoder, make = load_config(name).model.encoder, getattr(transformers, theirs)
    settings = make.config_class(
        hidden_size=encoder.width,
        num_hidden_layers=encoder.layers,
        num_attention_heads=settings_of(encoder, AttentionSpec).heads,
        intermediate_size=4 * encoder.width,
        **sizes,
    )
    with torch.device("meta"):
        model = make(settings)
    assert planned_parameters(name) == sum(each.numel() for each in model.parameters())


def test_counts_of_xlnet_are_those_of_hugging_face():
    """XLNetLMHeadModel, whose default settings are those of the large model."""
    transformers = pytest.importorskip("transformers")
    with torch.device("meta"):
        theirs = transformers.XLNetLMHeadModel(transformers.XLNetConfig())
    own = planned_model(sized_task(task_of(load_config("xlnet-large")), {}))
    counts = {sum(weight.numel() for weight in model.parameters()) for model in (own, theirs)}
    assert counts == {360_300_800}


def test_a_mixture_of_experts_has_the_parameters_of_mixtral_but_for_its_keys_and_values():
    """Mixtral has 46.7 billion. Ours have a key and a value for each of 32 heads in place of 8."""
    more_keys = 32 * 2 * 4096 * (4096 - 1024)
    assert count_parameters("moe-8x7b") == pytest.approx(46.7e9 + more_keys, rel=0.001)


@pytest.mark.parametrize(
    ("name", "other", "apart"),
    [
        ("captioning-bottleneck", "captioning", {"attention_rnn"}),
        ("captioning-hard-attention", "captioning", {"attention_rnn"}),
        ("captioning-patches", "captioning-transformer", {"encoder"}),
    ],
)
def test_forms_of_captioning_differ_in_one_thing(name, other, apart):
    """A comparison of the presets then measures only this difference."""
    one, another = load_config(name), load_config(other)
    assert {key for key, value in one.model if value != getattr(another.model, key)} == apart
    assert one.model_copy(update={"model": another.model}) == another


@pytest.mark.parametrize("task", all_tasks())
def test_every_task_has_a_preset_of_its_own(task):
    config = load_config(all_tasks()[task].preset)
    assert config.task.name == task
    with torch.device("meta"):
        assert sum(parameter.numel() for parameter in task_of(config).example_model().parameters())


@pytest.mark.parametrize("name", preset_names())
def test_a_description_is_short(name):
    """It has only sections that the preset reads, and a line for the weights of layers that are alike."""
    described = succeed("models", "describe", name).out
    mixers = {spec.section: name for name, spec in mixer_specs().items()}
    sections = re.findall(r"^\[model\.(\w+)\]", described, re.MULTILINE)
    model = load_config(name).model
    assert {mixers[section] for section in sections if section in mixers} <= {*model.mixer_names}
    assert re.match(rf"{name}: [A-Z].{{20,}}\.\n", described)
    by_layer = model.encoder.layers if model.encoder.kind == "patches" else 0  # a table, as of any network
    assert len(described.splitlines()) <= (84 if name == "lstm" else 218 + 6 * max(0, by_layer - 12))
