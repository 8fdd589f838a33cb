"""Videos: the frames of a film as pixels, read by FFmpeg through PyAV, which is the extra `video`."""

import io
import re
import struct
from collections.abc import Iterable
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from foveal.core.errors import UserError
from foveal.data.files.utf8 import File
from foveal.data.images.decode_limits import WIDEST, too_long, too_wide
from foveal.data.images.image_decoding import Picture, from_array
from foveal.data.images.image_files import content_of

if TYPE_CHECKING:
    from av import Packet, VideoFrame, VideoStream

VIDEOS = (".mp4", ".m4v", ".mov", ".3gp", ".avi", ".mkv", ".webm", ".mpg", ".mpeg", ".wmv", ".flv", ".ogv")
FORMS = "mov,matroska,avi,mpeg,mpegts,asf,flv,ogg"
"""Others, such as lists of files, could lead out of the file."""
READING = {"format_whitelist": FORMS, "protocol_whitelist": "none", "fflags": "+genpts"}
DECODING = {"max_pixels": f"{WIDEST}", "err_detect": "crccheck+bitstream+buffer+explode"}
"""What is damaged is said, and not painted over."""
DAMAGED, FOLLOWS = "damaged; get the file anew", "made of a damaged frame before it"


def is_video(name: str) -> bool:
    return name.lower().endswith(VIDEOS)


def read_video(file: File, size: int, channels: int, most: int) -> list[Picture | str] | str:
    """The frames of a film (H, W, channels) as `read_picture` has a picture, upright, of which there may be
    `most`; for one that can't be read why, and for those up to the next that needs none before it.

    Errors: UserError where PyAV is missing.
    """
    content = content_of(file)
    if isinstance(content, str):
        return content
    if not content:
        return "empty; get the file anew"
    if _swells(content):
        return "damaged or cut off: it says that it holds more than it does; get the file anew"
    try:
        import av
    except ImportError:
        raise UserError(f"{file}: a video, and PyAV is missing: pip install av") from None
    try:
        given = READING | DECODING
        with av.open(io.BytesIO(content), "r", options=given, metadata_errors="replace") as film:
            stream = film.streams.best("video")
            if not isinstance(stream, av.VideoStream):
                return "no pictures in it: it is sound alone, or cut off; get the file anew"
            if stream.codec_context is None:
                return "pictures in a form that FFmpeg does not know; convert it"
            shape = (stream.width, stream.height)
            if why := too_wide(shape) or too_long(shape, stream.frames, most):
                return why
            stream.codec_context.thread_count = 1  # several would hold more frames, and tell of faults later
            stream.codec_context.options = DECODING
            found = _frames(film.demux(stream), shape, size, channels, most)
            if isinstance(found, list):
                found += ["missing: the film is cut off; get the file anew"] * (stream.frames - len(found))
            return found
    except Exception as error:  # of FFmpeg's readers, of many kinds
        why = getattr(error, "strerror", None) or type(error).__name__
        return f"damaged, cut off or no video ({why}); get the file anew"


def _swells(content: bytes) -> bool:
    """Whether an MP4 says that it has more frames, all of one size (ISO/IEC 14496-12, `stsz`), than it has
    room for: it is believed, and each takes 70 bytes of memory."""
    for table in re.finditer(rb"stsz\0{4}(.{8})", content, re.DOTALL):
        size, count = struct.unpack(">2I", table[1])
        if size * count > len(content):
            return True
    return False


def _frames(
    packets: Iterable["Packet[VideoStream]"], shape: tuple[int, int], size: int, channels: int, most: int
) -> list[Picture | str] | str:
    """In the order in which they are shown, by their times: packets come in another one."""
    from av import FFmpegError

    found: list[tuple[int, Picture | str]] = []
    lost: dict[int, str] = {}
    count, time, why = 0, 0, ""
    for packet in packets:
        if packet.size:  # the last has none, and brings the frames that were held back
            count += 1
            if count > most:
                return f"more than {most} frames, and data.longest={most}: train with more, or cut the clip"
            if too_many := too_long(shape, count, most):
                return too_many
            time = time if packet.pts is None else packet.pts
            why = "" if packet.is_keyframe else why
        try:
            frames = packet.decode()
        except FFmpegError:
            frames, why = [], FOLLOWS
            lost[time] = DAMAGED
        if why:
            lost.setdefault(time, why)
        for frame in frames:
            shown = time if frame.pts is None else frame.pts
            if frame.is_corrupt:
                lost.setdefault(shown, DAMAGED)
            if shown not in lost:
                found.append((shown, _upright(frame, size, channels)))
    return [one for _, one in sorted([*found, *lost.items()], key=itemgetter(0))]


def _upright(frame: "VideoFrame", size: int, channels: int) -> Picture | str:
    """Turned as the film says, which a camera that was held upright writes."""
    found = from_array(frame.to_ndarray(format="rgb24"), size, channels)
    if isinstance(found, str):
        return found
    return Picture(np.rot90(found.pixels, round(frame.rotation / 90)), found.content)
