"""Image files that tests draw."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from justright.data.audit import AuditReport, Finding


def drawing(seed: int, size: int = 96) -> Image.Image:
    """Ellipses and boxes on a colored ground; another seed gives another composition."""
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", (size, size), tuple(rng.integers(60, 190, 3).tolist()))
    pen = ImageDraw.Draw(image)
    for shape in (pen.ellipse, pen.rectangle) * 4:
        x, y = rng.uniform(0, 0.8, 2) * size
        width, height = rng.uniform(0.1, 0.5, 2) * size
        shape((x, y, x + width, y + height), fill=tuple(rng.integers(0, 256, 3).tolist()))
    return image


def file_of(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def bomb(side: int) -> bytes:
    """A PNG of a few bytes whose header promises gigapixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


def put(file: Path, content: bytes | Image.Image) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else file_of(content))
    return file


def of_kind(report: AuditReport, kind: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.kind == kind]


def paths(finding: Finding) -> set[str]:
    return {image.path for image in finding.images}
