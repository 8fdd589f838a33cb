"""Decode videos to the pixels of their frames, with FFmpeg through PyAV (the extra `video`)."""

import io
import re
import struct
from collections.abc import Iterable
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from foveal.core.extras import require
from foveal.data.files.file_bytes import read_file_bytes
from foveal.data.files.utf8 import AnyPath
from foveal.data.images.decode_limits import MAX_VIDEO_PIXELS, frame_count_error, video_size_error
from foveal.data.images.image_decoding import DecodedImage, image_from_array

if TYPE_CHECKING:
    from av import Packet, VideoFrame, VideoStream

VIDEO_SUFFIXES = (
    ".mp4",
    ".m4v",
    ".mov",
    ".3gp",
    ".avi",
    ".mkv",
    ".webm",
    ".mpg",
    ".mpeg",
    ".wmv",
    ".flv",
    ".ogv",
)
CONTAINER_FORMATS = "mov,matroska,avi,mpeg,mpegts,asf,flv,ogg"
"""Formats that are read. Others, such as lists of files, could lead out of the file."""
CONTAINER_OPTIONS = {"format_whitelist": CONTAINER_FORMATS, "protocol_whitelist": "none", "fflags": "+genpts"}
DECODER_OPTIONS = {"max_pixels": f"{MAX_VIDEO_PIXELS}", "err_detect": "crccheck+bitstream+buffer+explode"}
"""Damage is reported, and not concealed."""
DAMAGED_FRAME, DEPENDENT_FRAME = "damaged; get the file again", "depends on a damaged frame before it"


def is_video(name: str) -> bool:
    return name.lower().endswith(VIDEO_SUFFIXES)


def decode_video(file: AnyPath, size: int, channels: int, max_frames: int) -> list[DecodedImage | str] | str:
    """Decode the frames (H, W, channels) of a video of at most `max_frames` frames, upright, like
    `decode_image`.

    A frame that can't be decoded is a reason instead, as are the following frames up to the next key frame.
    Return a single reason if the video can't be used.

    Raises: UserError: PyAV is missing.
    """
    content = read_file_bytes(file)
    if isinstance(content, str):
        return content
    if not content:
        return "empty; get the file again"
    if _claims_too_many_frames(content):
        return "damaged or cut off: it claims to have more frames than it can have; get the file again"
    require("av", f"{file}: a video")
    import av

    try:
        options = CONTAINER_OPTIONS | DECODER_OPTIONS
        with av.open(io.BytesIO(content), "r", options=options, metadata_errors="replace") as video:
            stream = video.streams.best("video")
            if not isinstance(stream, av.VideoStream):
                return "no images in it: it has only sound, or is cut off; get the file again"
            if stream.codec_context is None:
                return "images in a format that FFmpeg does not know; convert the video"
            shape = (stream.width, stream.height)
            if error := video_size_error(shape) or frame_count_error(shape, stream.frames, max_frames):
                return error
            stream.codec_context.thread_count = 1  # several hold more frames, and report errors later
            stream.codec_context.options = DECODER_OPTIONS
            frames = _frames(video.demux(stream), shape, size, channels, max_frames)
            if isinstance(frames, list):
                frames += ["missing: the video is cut off; get the file again"] * (
                    stream.frames - len(frames)
                )
            return frames
    except Exception as exception:  # many kinds, of FFmpeg's readers
        name = getattr(exception, "strerror", None) or type(exception).__name__
        return f"damaged, cut off or not a video ({name}); get the file again"


def _claims_too_many_frames(content: bytes) -> bool:
    """Return whether an MP4 claims more frames of equal size (ISO/IEC 14496-12, `stsz`) than can fit in the
    file.

    FFmpeg trusts this number, and each frame takes 70 bytes of memory.
    """
    for table in re.finditer(rb"stsz\0{4}(.{8})", content, re.DOTALL):
        size, count = struct.unpack(">2I", table[1])
        if size * count > len(content):
            return True
    return False


def _frames(
    packets: Iterable["Packet[VideoStream]"],
    shape: tuple[int, int],
    size: int,
    channels: int,
    max_frames: int,
) -> list[DecodedImage | str] | str:
    """Decode frames in the order of presentation, by their times. The order of packets differs."""
    from av import FFmpegError

    decoded: list[tuple[int, DecodedImage | str]] = []
    lost: dict[int, str] = {}
    count, time, reason = 0, 0, ""
    for packet in packets:
        if packet.size:  # the last packet is empty, and returns the frames that were held back
            count += 1
            if count > max_frames:
                return (
                    f"more than {max_frames} frames, and data.max_length={max_frames}: "
                    "train with more, or cut the clip"
                )
            if error := frame_count_error(shape, count, max_frames):
                return error
            time = time if packet.pts is None else packet.pts
            reason = "" if packet.is_keyframe else reason
        try:
            frames = packet.decode()
        except FFmpegError:
            frames, reason = [], DEPENDENT_FRAME
            lost[time] = DAMAGED_FRAME
        if reason:
            lost.setdefault(time, reason)
        for frame in frames:
            frame_time = time if frame.pts is None else frame.pts
            if frame.is_corrupt:
                lost.setdefault(frame_time, DAMAGED_FRAME)
            if frame_time not in lost:
                decoded.append((frame_time, _apply_rotation(frame, size, channels)))
    return [frame for _, frame in sorted([*decoded, *lost.items()], key=itemgetter(0))]


def _apply_rotation(frame: "VideoFrame", size: int, channels: int) -> DecodedImage | str:
    """Convert a frame to pixels, rotated by the rotation that the video specifies.

    Cameras that are held upright specify a rotation.
    """
    image = image_from_array(frame.to_ndarray(format="rgb24"), size, channels)
    if isinstance(image, str):
        return image
    return DecodedImage(np.rot90(image.pixels, round(frame.rotation / 90)), image.content)
