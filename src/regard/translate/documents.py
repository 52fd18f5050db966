"""Documents through a translator: segments out, translations in."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from regard.errors import ConfigError
from regard.formats.archives import ARCHIVES
from regard.formats.document import document
from regard.formats.segments import Said, Segment, Wanted
from regard.translate.request import Request
from regard.translate.result import Translation
from regard.translate.translator import Translator

_SENTENCE = re.compile(r"""[.!?…:;,。！？：][\s"'»”’)\]]*\Z""")
_FULL_STOP = re.compile(r"(?<![.\s])\.((?:</[^<>]*>)*)\Z")


@dataclass(frozen=True, slots=True)
class TranslatedDocument:
    """A document with its segments and their translations, and what was left as it is, counted by reason."""

    data: bytes
    segments: list[tuple[Segment, Translation]]
    skipped: Counter[str]
    place: str
    """What the places of segments are: lines or paragraphs."""

    @property
    def has_notes(self) -> bool:
        """Whether the format has a place for notes on translations."""
        return all(segment.annotate is not None for segment, _ in self.segments)


def translate_document(
    translator: Translator,
    data: bytes,
    ending: str,
    asked: Request,
    *,
    again: bool = False,
    quality: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> TranslatedDocument:
    """Translate the text of a document, and leave everything else as it is.

    `ending` is that of the file's name, such as `.docx`. `asked` is a request without text, for its options.
    Texts that come twice are translated once. With `again`, what has a translation is translated again. With
    `quality`, each translation gets a note with its quality and flags, in formats that have notes.
    """
    languages = translator.model.source_language, translator.model.target_language
    if None in languages:
        raise ConfigError("the model does not say its languages, which documents need")
    wanted = Wanted(languages[0] or "", languages[1] or "", again)
    work = document(data, ending, wanted)
    done: list[tuple[Segment, Translation]] = []
    try:
        segments = next(work)
        while True:
            translations = _translated(translator, segments, asked, on_progress)
            done += zip(segments, translations, strict=True)
            segments = work.send([Said(text_of(one), _note(one) if quality else "") for one in translations])
    except StopIteration as end:
        place = "paragraph" if ending in ARCHIVES else "line"
        return TranslatedDocument(end.value, done, wanted.skipped, place)


def text_of(translation: Translation) -> str:
    """Return the translation with its tags, if it has any.

    Headings and labels have no full stop at the end, but models learn from sentences and add one.
    """
    said = translation.text if translation.marked is None else translation.marked
    if _SENTENCE.search(translation.source) or "memory" in translation.flags:
        return said
    return _FULL_STOP.sub(r"\1", said)


def _note(translation: Translation) -> str:
    flags = f"; flags: {', '.join(translation.flags)}" if translation.flags else ""
    return f"quality {translation.quality:.2f}{flags}"


def _translated(
    translator: Translator,
    segments: list[Segment],
    asked: Request,
    on_progress: Callable[[int, int], None] | None,
) -> list[Translation]:
    requests = [replace(asked, text=one.text, markup=one.markup) for one in segments]
    keys = [(one.text, one.markup) for one in requests]
    unique = dict(zip(keys, requests, strict=True))
    found: dict[object, Translation] = {}
    for key, translation in zip(unique, translator.stream(unique.values()), strict=True):
        found[key] = translation
        if on_progress is not None:
            on_progress(len(found), len(unique))
    return [found[key] for key in keys]
