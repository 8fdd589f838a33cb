"""A target string for each source string, scored by exact match: moves, phonemes, copies."""

from foveal.metrics.recognition import cer, exact_match, wer
from foveal.tasks.shapes.text_pairs import TextToTextTask


class TransductionTask(TextToTextTask):
    name = "transduction"
    purpose = "Turn a string into another by a rule."
    preset = "transduction"
    datasets = ("copy", "reverse", "scan", "cmudict")
    metrics = (exact_match, wer, cer)
