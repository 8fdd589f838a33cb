"""Videos: the frames of a film as pixels, read by FFmpeg through PyAV, which is the extra `video`."""

import io
import re
import struct
from collections.abc import Iterable
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from foveal.core.errors import UserError
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
"""Others, such as lists of files, could lead out of the file."""
CONTAINER_OPTIONS = {"format_whitelist": CONTAINER_FORMATS, "protocol_whitelist": "none", "fflags": "+genpts"}
DECODER_OPTIONS = {"max_pixels": f"{MAX_VIDEO_PIXELS}", "err_detect": "crccheck+bitstream+buffer+explode"}
"""What is damaged is said, and not painted over."""
DAMAGED_FRAME, DEPENDENT_FRAME = "damaged; get the file again", "made of a damaged frame before it"


def is_video(name: str) -> bool:
    return name.lower().endswith(VIDEO_SUFFIXES)


def decode_video(file: AnyPath, size: int, channels: int, max_frames: int) -> list[DecodedImage | str] | str:
    """The frames of a film (H, W, channels) as `decode_image` has a picture, upright, of which there may be
    `max_frames`; for one that can't be read why, and for those up to the next that needs none before it.

    Errors: UserError where PyAV is missing.
    """
    content = read_file_bytes(file)
    if isinstance(content, str):
        return content
    if not content:
        return "empty; get the file again"
    if _claims_too_many_frames(content):
        return "damaged or cut off: it says that it holds more than it does; get the file again"
    try:
        import av
    except ImportError:
        raise UserError(f"{file}: a video, and PyAV is missing: pip install av") from None
    try:
        given = CONTAINER_OPTIONS | DECODER_OPTIONS
        with av.open(io.BytesIO(content), "r", options=given, metadata_errors="replace") as film:
            stream = film.streams.best("video")
            if not isinstance(stream, av.VideoStream):
                return "no pictures in it: it is sound alone, or cut off; get the file again"
            if stream.codec_context is None:
                return "pictures in a form that FFmpeg does not know; convert it"
            shape = (stream.width, stream.height)
            if why := video_size_error(shape) or frame_count_error(shape, stream.frames, max_frames):
                return why
            stream.codec_context.thread_count = 1  # several would hold more frames, and tell of faults later
            stream.codec_context.options = DECODER_OPTIONS
            found = _frames(film.demux(stream), shape, size, channels, max_frames)
            if isinstance(found, list):
                found += ["missing: the film is cut off; get the file again"] * (stream.frames - len(found))
            return found
    except Exception as error:  # of FFmpeg's readers, of many kinds
        why = getattr(error, "strerror", None) or type(error).__name__
        return f"damaged, cut off or no video ({why}); get the file again"


def _claims_too_many_frames(content: bytes) -> bool:
    """Whether an MP4 says that it has more frames, all of one size (ISO/IEC 14496-12, `stsz`), than it has
    room for: it is believed, and each takes 70 bytes of memory."""
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
    """In the order in which they are shown, by their times: packets come in another one."""
    from av import FFmpegError

    found: list[tuple[int, DecodedImage | str]] = []
    lost: dict[int, str] = {}
    count, time, why = 0, 0, ""
    for packet in packets:
        if packet.size:  # the last has none, and brings the frames that were held back
            count += 1
            if count > max_frames:
                return (
                    f"more than {max_frames} frames, and data.max_length={max_frames}: "
                    "train with more, or cut the clip"
                )
            if too_many := frame_count_error(shape, count, max_frames):
                return too_many
            time = time if packet.pts is None else packet.pts
            why = "" if packet.is_keyframe else why
        try:
            frames = packet.decode()
        except FFmpegError:
            frames, why = [], DEPENDENT_FRAME
            lost[time] = DAMAGED_FRAME
        if why:
            lost.setdefault(time, why)
        for frame in frames:
            shown = time if frame.pts is None else frame.pts
            if frame.is_corrupt:
                lost.setdefault(shown, DAMAGED_FRAME)
            if shown not in lost:
                found.append((shown, _apply_rotation(frame, size, channels)))
    return [one for _, one in sorted([*found, *lost.items()], key=itemgetter(0))]


def _apply_rotation(frame: "VideoFrame", size: int, channels: int) -> DecodedImage | str:
    """Turned as the film says, which a camera that was held upright writes."""
    found = image_from_array(frame.to_ndarray(format="rgb24"), size, channels)
    if isinstance(found, str):
        return found
    return DecodedImage(np.rot90(found.pixels, round(frame.rotation / 90)), found.content)
