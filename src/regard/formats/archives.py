"""Archives whose parts are XML: DOCX, PPTX, ODT, ODP, ODS, EPUB. All other parts are copied as they are."""

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Generator, Sequence
from functools import partial

from regard.errors import DocumentError
from regard.files import MAX_EXPANSION
from regard.formats.html import html_document
from regard.formats.office import paragraphs
from regard.formats.segments import Encoded, Said, Segment, Wanted, Work

_MAX_BYTES = 256 << 20
_OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # the container of encrypted and of old Office files
_WORDS = re.compile(r"word/(?:document|header\d*|footer\d*|footnotes|endnotes|comments)\d*\.xml")
_SLIDES = re.compile(r"ppt/(?:slides|notesSlides)/\w+\.xml")
_CONTENT = re.compile(r"(?:content|styles)\.xml")
_PAGES = re.compile(r".+\.(?:xhtml|html|htm)", re.IGNORECASE)
_PARTS: dict[str, tuple[re.Pattern[str], Callable[[str, Wanted], Work]]] = {
    ".docx": (_WORDS, partial(paragraphs, kind="w")),
    ".docm": (_WORDS, partial(paragraphs, kind="w")),
    ".pptx": (_SLIDES, partial(paragraphs, kind="a")),
    ".odt": (_CONTENT, partial(paragraphs, kind="text")),
    ".odp": (_CONTENT, partial(paragraphs, kind="text")),
    ".ods": (_CONTENT, partial(paragraphs, kind="text")),
    ".epub": (_PAGES, html_document),
}
ARCHIVES = tuple(_PARTS)


def archive(data: bytes, ending: str, wanted: Wanted) -> Generator[list[Segment], Sequence[Said], bytes]:
    """Translate the parts of an archive that hold its text."""
    pattern, work = _PARTS[ending]
    out = io.BytesIO()
    num_parts = 0
    with _opened(data) as old, zipfile.ZipFile(out, "w") as new:
        new.comment = old.comment
        for info in old.infolist():
            part = _read(old, info)
            if pattern.fullmatch(info.filename):
                num_parts += 1
                encoded = Encoded.of(part, declared=True)
                try:
                    text = yield from work(encoded.text, wanted)
                except DocumentError as error:
                    raise DocumentError(f"{info.filename}: {error}") from None
                part = encoded.bytes_of(text, escape=True)
            new.writestr(info, part)
    if not num_parts:
        raise DocumentError(f"is no {ending} document: the part with its text is not there")
    return out.getvalue()


def _opened(data: bytes) -> zipfile.ZipFile:
    if data.startswith(_OLD):
        raise DocumentError("is encrypted, or of an old Office; open it and save it again without a password")
    try:
        found = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, EOFError, OSError) as error:
        raise DocumentError(f"is damaged, or not what its ending says ({error!s:.60})") from None
    infos = found.infolist()
    if any(info.flag_bits & 1 for info in infos) or "META-INF/encryption.xml" in found.namelist():
        raise DocumentError("is encrypted; save it without a password")
    if "META-INF/manifest.xml" in found.namelist() and b"encryption-data" in _read(
        found, found.getinfo("META-INF/manifest.xml")
    ):
        raise DocumentError("is encrypted; save it without a password")
    size = sum(info.file_size for info in infos)
    if size > max(_MAX_BYTES // 16, min(_MAX_BYTES, MAX_EXPANSION * len(data))):
        raise DocumentError(f"expands to {size:,} bytes, which is too much for its size")
    return found


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    try:
        with archive.open(info) as part:
            data = part.read(_MAX_BYTES)  # no more than its header says, and that was checked
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise DocumentError(f"{info.filename}: is damaged ({error!s:.60}); copy it again") from None
    return data
