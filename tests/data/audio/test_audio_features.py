"""Recordings: every form and rate gives the same sound; what can't be used is refused with its reason."""

import io
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.data.audio.audio_features import (
    FEATURES_FILE,
    AudioFeatureExtractor,
    LogMelSettings,
    _resampler,
    read_audio,
)
from foveal.data.core.rows import Row
from foveal.data.core.standardize import Statistics
from foveal.data.files.data_part import open_part
from foveal.ops.audio.log_mel import log_mel

soundfile = pytest.importorskip("soundfile")

FORMS = {
    "pcm8.wav": ("WAV", "PCM_U8", 1e-2),
    "pcm16.wav": ("WAV", "PCM_16", 1e-4),
    "pcm24.wav": ("WAV", "PCM_24", 1e-6),
    "pcm32.wav": ("WAV", "PCM_32", 1e-6),
    "float.wav": ("WAV", "FLOAT", 1e-6),
    "a.flac": ("FLAC", "PCM_16", 1e-4),
    "a.ogg": ("OGG", "VORBIS", 5e-2),
    "a.mp3": ("MP3", "MPEG_LAYER_III", 5e-2),
}


def tone(sample_rate: int, seconds: float = 0.5) -> NDArray[np.float32]:
    """A chord of 440 and 1,210 Hz that swells and fades."""
    t = np.arange(round(sample_rate * seconds)) / sample_rate
    swell = np.sin(np.pi * t / seconds) ** 2
    chord = 0.4 * np.sin(2 * np.pi * 440 * t) + 0.3 * np.sin(2 * np.pi * 1210 * t)
    return (swell * chord).astype(np.float32)


def refusal(path: Path, max_seconds: float = 10.0) -> str:
    with pytest.raises(UserError) as caught:
        read_audio(path, 16000, max_seconds)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("channels", [1, 2])
def test_forms(name, channels, tmp_path):
    form, subtype, error = FORMS[name]
    samples = tone(16000)
    both = np.stack([samples * 1.2, samples * 0.8], 1) if channels == 2 else samples
    soundfile.write(tmp_path / name, both, 16000, subtype, format=form)
    found = read_audio(tmp_path / name, 16000, 10.0)
    assert found.dtype == np.float32
    assert 8000 <= len(found) <= 8000 + 2304 * (form == "MP3")  # in frames of 1,152, one before the first
    best = max(range(len(found) - 8000 + 1), key=lambda k: float(found[k : k + 8000] @ samples))
    assert np.abs(found[best : best + 8000] - samples).max() < error


@pytest.mark.parametrize(
    ("sample_rate", "error"),
    [(rate, 3e-3) for rate in (8000, 11025, 16000, 22050, 44100, 48000, 96000)]
    + [(44101, 2e-2), (7919, 2e-2)],
)
@pytest.mark.parametrize("wanted", [8000, 16000])
def test_rates(sample_rate, error, wanted, tmp_path):
    """A band-limited sound is the same at every rate, and nearly so at rates without a short ratio."""
    soundfile.write(tmp_path / "a.wav", tone(sample_rate), sample_rate, "FLOAT")
    found, expected = read_audio(tmp_path / "a.wav", wanted, 10.0), tone(wanted)
    assert abs(len(found) - len(expected)) <= 2
    size = min(len(found), len(expected))
    assert np.abs(found[:size] - expected[:size]).max() < error


def test_rates_without_a_short_ratio_need_no_large_filters():
    """Each of the new samples has a filter of its own, until the ratio repeats."""
    resampler: Any = _resampler(44101, 16000)
    assert resampler.kernel.numel() < 2_000_000  # and 700 million for the exact ratio


def test_a_sample_is_left_of_the_shortest_recording(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.array([0.1, 0.2], np.float32), 96000, "FLOAT")
    assert len(read_audio(tmp_path / "a.wav", 8000, 10.0)) == 1


def test_what_is_above_half_the_rate_is_gone(tmp_path):
    """7 kHz at 16 kHz would come back as 1 kHz at 8 kHz, were it only every second sample."""
    t = np.arange(16000) / 16000
    soundfile.write(tmp_path / "a.wav", 0.5 * np.sin(2 * np.pi * 7000 * t), 16000, "FLOAT")
    assert np.abs(read_audio(tmp_path / "a.wav", 8000, 10.0)[200:-200]).max() < 1e-3


def test_samples_stay_between_minus_one_and_one(tmp_path):
    square = np.sign(np.sin(2 * np.pi * 300 * np.arange(4000) / 8000)).astype(np.float32)
    soundfile.write(tmp_path / "a.wav", 1.05 * square, 8000, "FLOAT")
    for rate in (8000, 16000):
        assert np.abs(read_audio(tmp_path / "a.wav", rate, 10.0)).max() == 1


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        ([], "no samples in it"),
        ([0.0] * 900, "silent: all samples are equal"),
        ([0.25] * 900, "silent: all samples are equal"),
        ([0.1, math.nan, 0.2] * 300, "has NaN or infinity"),
        ([0.1, math.inf, 0.2] * 300, "has NaN or infinity"),
        ([8000.0, -32000.0] * 300, "samples up to 32000; scale the samples to -1 .. 1"),
    ],
)
def test_sounds_that_are_refused(samples, says, tmp_path):
    soundfile.write(tmp_path / "a.wav", np.array(samples, np.float32), 16000, "FLOAT")
    assert says in refusal(tmp_path / "a.wav")


def test_channels_that_cancel_are_silent(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.stack([tone(8000), -tone(8000)], 1), 8000, "FLOAT")
    assert "silent" in refusal(tmp_path / "a.wav")


def test_a_longer_recording_is_refused_before_it_is_read(tmp_path):
    soundfile.write(tmp_path / "a.wav", tone(8000, 2.0), 8000)
    assert "2.0 s long, more than 1.5 s" in refusal(tmp_path / "a.wav", 1.5)
    assert len(read_audio(tmp_path / "a.wav", 8000, 2.0)) == 16000


@pytest.mark.parametrize("name", FORMS)
def test_a_file_that_is_cut_off_is_refused(name, tmp_path):
    form, subtype, _ = FORMS[name]
    whole = io.BytesIO()
    noise = np.random.default_rng(0).normal(size=48000).astype(np.float32) * 0.1
    soundfile.write(whole, noise, 16000, subtype, format=form)
    for share in (0.001, 0.4, 0.9, 0.999):
        (tmp_path / name).write_bytes(whole.getvalue()[: round(len(whole.getvalue()) * share)])
        message = refusal(tmp_path / name)
        assert "cut off; get the whole file" in message or "not readable as wav, flac" in message


@pytest.mark.parametrize("claimed", [0x7FFFFFFF, 0xFFFFFFFF])
def test_a_wav_that_was_written_into_a_pipe_is_whole(claimed, tmp_path):
    """Its writer could not go back and put in the length; broken notes behind the samples do no harm."""
    soundfile.write(tmp_path / "a.wav", tone(8000), 8000)
    content = (tmp_path / "a.wav").read_bytes() + b"LIST junk"
    assert content[36:40] == b"data"
    (tmp_path / "b.wav").write_bytes(content)
    assert len(read_audio(tmp_path / "b.wav", 8000, 10.0)) == 4000
    endless = struct.pack("<I", claimed)
    (tmp_path / "a.wav").write_bytes(content[:4] + endless + content[8:40] + endless + content[44:-9])
    assert len(read_audio(tmp_path / "a.wav", 8000, 10.0)) == 4000


@pytest.mark.parametrize("name", ["a.wav", "a.mp3", "a.raw", "a"])
@pytest.mark.parametrize("content", [b"", b"hello world\n" * 99, b"RIFF\0\0\0\0WAVEfmt ", bytes(5000)])
def test_what_is_no_recording_is_refused(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    assert "not readable as wav, flac, ogg or mp3; get the file again" in refusal(tmp_path / name)


def test_missing_files_and_odd_rates(tmp_path):
    assert "can't read: No such file" in refusal(tmp_path / "none.wav")
    for rate in (1, 999, 2_000_000):
        soundfile.write(tmp_path / "a.wav", tone(8000), 8000)
        content = bytearray((tmp_path / "a.wav").read_bytes())
        content[24:28] = struct.pack("<I", rate)
        (tmp_path / "a.wav").write_bytes(content)
        assert f"{rate} samples per second" in refusal(tmp_path / "a.wav", 1e9)


def test_features(tmp_path):
    """Frames of the training part, standardised by their own statistics, have mean 0 and deviation 1."""
    settings, files = LogMelSettings(8000, 20, 5.0), [tmp_path / f"{i}.wav" for i in range(3)]
    for i, path in enumerate(files):
        noise = np.random.default_rng(i).normal(size=(i + 1) * 3000)
        soundfile.write(path, 0.1 * noise, 8000, "FLOAT")
    features = AudioFeatureExtractor(settings, Statistics.from_data(map(settings.frames, files)))
    frames = [features(path) for path in files]
    assert [part.shape for part in frames] == [(36, 20), (73, 20), (111, 20)]
    every = np.concatenate(frames)
    assert every.dtype == np.float32
    np.testing.assert_allclose(every.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(every.std(0), 1, rtol=1e-4)
    expected = log_mel(torch.from_numpy(read_audio(files[0], 8000, 5.0)), 8000, 20).numpy()
    again = frames[0] * features.statistics.std + features.statistics.mean
    np.testing.assert_allclose(again, expected, rtol=1e-5)
    (tmp_path / FEATURES_FILE).write_text(features.to_json())
    assert AudioFeatureExtractor.load(tmp_path) == features


@pytest.mark.parametrize("content", ["", "{}", '{"settings": {"sample_rate": 8000, "bands": 3}}'])
def test_damaged_features_are_named(content, tmp_path):
    (tmp_path / FEATURES_FILE).write_text(content)
    with pytest.raises(UserError, match=r"features\.json: damaged"):
        AudioFeatureExtractor.load(tmp_path)


def test_spoken_digits(outside_data, tmp_path):
    """Every one of the 3,000 can be used, 300 of them to test; the words are those of the file names."""
    from benchmarks.digits import unpack
    from foveal.data.files.folders import FILE_FIELD, read_folder

    assert unpack(outside_data / "free_spoken_digits.zip", tmp_path) == {"train": 2700, "test": 300}
    rows = [row for row in read_folder(open_part(str(tmp_path / "test")), ["text"]) if isinstance(row, Row)]
    assert len(rows) == 300
    assert {row.fields["text"] for row in rows if row.fields[FILE_FIELD].name.startswith("7_")} == {"seven"}
    settings = LogMelSettings(8000, 40)
    lengths = [len(settings.frames(row.fields[FILE_FIELD])) for row in rows[::10]]
    assert 20 < sum(lengths) / len(lengths) < 80
