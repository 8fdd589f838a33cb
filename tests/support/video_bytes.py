"""Videos for tests, which are skipped if PyAV is missing."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

LOSSLESS = {"mp4": ("libx264rgb", "rgb24", {"qp": "0"}), "mkv": ("ffv1", "bgr0", {"g": "1"})}
"""By the suffix of a file what keeps pixels bit for bit; in the second every frame stands alone."""


def encode_video(frames: Sequence[NDArray[np.uint8]] | NDArray[np.uint8], suffix: str = "mp4") -> bytes:
    """Encode frames of (H, W, 3)."""
    return encode_frames(frames, suffix, *LOSSLESS[suffix])


def encode_frames(frames: Any, suffix: str, codec: str, pixels: str, options: dict[str, str]) -> bytes:
    av = pytest.importorskip("av")
    out = io.BytesIO()
    with av.open(out, "w", format={"mkv": "matroska"}.get(suffix, suffix)) as container:
        stream = container.add_stream(codec, rate=10, options=options)
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = pixels
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode(None))
    return out.getvalue()


def video_without_frames(suffix: str) -> bytes:
    av = pytest.importorskip("av")
    out = io.BytesIO()
    with av.open(out, "w", format=suffix) as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return out.getvalue()


def join_videos(contents: Sequence[bytes], suffix: str) -> bytes:
    """Join the frames of several videos in a single video with the header of the first."""
    av = pytest.importorskip("av")
    out, time = io.BytesIO(), 0
    with av.open(out, "w", format=suffix) as container:
        stream = None
        for content in contents:
            with av.open(io.BytesIO(content)) as source:
                stream = stream or container.add_stream_from_template(source.streams.video[0])
                for packet in source.demux(video=0):
                    if packet.size:
                        packet.stream, packet.pts, packet.dts, time = stream, time, time, time + 1
                        container.mux(packet)
    return out.getvalue()


def frame_slices(content: bytes) -> list[slice]:
    """Return the positions of a video's frames in its file, in file order."""
    av = pytest.importorskip("av")
    with av.open(io.BytesIO(content)) as container:
        return [slice(one.pos, one.pos + one.size) for one in container.demux(video=0) if one.size]


def damage_frame(content: bytes, number: int) -> bytes:
    """Overwrite frame `number`, counted from 0, except for its start."""
    place = frame_slices(content)[number]
    start = place.start + 24
    return content[:start] + b"\xa5" * (place.stop - start) + content[place.stop :]


def rotate_video(content: bytes) -> bytes:
    """Return an MP4 with the matrix of a camera held upright (ISO/IEC 14496-12, `tkhd`): x' = -y, y' = x."""
    at = content.index(b"tkhd") + 4 + 40
    matrix = b"".join(
        number.to_bytes(4, "big", signed=True) for number in (0, 1 << 16, 0, -1 << 16, 0, 0, 0, 0, 1 << 30)
    )
    return content[:at] + matrix + content[at + 36 :]
