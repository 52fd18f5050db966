"""A document of any format: bytes in, bytes out, and its segments between."""

from collections.abc import Callable, Generator, Sequence

from regard.errors import DocumentError
from regard.formats.archives import ARCHIVES, archive
from regard.formats.html import html_document
from regard.formats.markdown import markdown
from regard.formats.plain import plain_document
from regard.formats.po import po
from regard.formats.segments import Encoded, Said, Segment, Wanted, Work
from regard.formats.strings import ios_strings, json_document, properties
from regard.formats.subtitles import subtitles
from regard.formats.xml_files import android_or_resx, tmx, xliff

MAX_BYTES = 64 << 20
_TEXTS: dict[str, Callable[[str, Wanted], Work]] = {
    ".html": html_document,
    ".htm": html_document,
    ".xhtml": html_document,
    ".md": markdown,
    ".markdown": markdown,
    ".txt": plain_document,
    ".srt": subtitles,
    ".vtt": subtitles,
    ".po": po,
    ".pot": po,
    ".xlf": xliff,
    ".xliff": xliff,
    ".tmx": tmx,
    ".xml": android_or_resx,
    ".resx": android_or_resx,
    ".json": json_document,
    ".properties": properties,
    ".strings": ios_strings,
}
_DECLARED = frozenset((".html", ".htm", ".xhtml", ".xlf", ".xliff", ".tmx", ".xml", ".resx"))
ENDINGS = (*_TEXTS, *ARCHIVES)
"""The endings of the names of documents that can be translated."""

DocumentWork = Generator[list[Segment], Sequence[Said], bytes]


def document(data: bytes, ending: str, wanted: Wanted) -> DocumentWork:
    """Yield the segments of a document, be sent their translations, and return the translated document.

    Everything but the segments stays as it is. Raises DocumentError for what cannot be read.
    """
    if len(data) > MAX_BYTES:
        raise DocumentError(f"has {len(data):,} bytes; {MAX_BYTES:,} can be translated at once: divide it")
    if ending in ARCHIVES:
        return (yield from archive(data, ending, wanted))
    if ending not in _TEXTS:
        raise DocumentError(f"is no document that can be translated; known are {' '.join(ENDINGS)}")
    encoded = Encoded.of(data, declared=ending in _DECLARED)
    text = yield from _TEXTS[ending](encoded.text, wanted)
    return encoded.bytes_of(text, escape=ending in _DECLARED)
