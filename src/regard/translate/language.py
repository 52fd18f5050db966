"""Is a source in the language that the model reads? Asked only of texts whose translation looks poor."""

from regard.corpus.checks import known_language, sure_language
from regard.loaded import Loaded
from regard.text.words import words
from regard.translate.result import Translation

# To load what recognises languages takes half a second of processor time, so good translations are not asked
# about; short texts are seldom recognised with certainty.
MAX_QUALITY = 0.6
_MIN_WORDS = 4
_MIN_PROB = 0.8


def is_other_language(model: Loaded, translation: Translation) -> bool:
    """Tell whether the source is surely in another language than the one the model reads."""
    language = model.source_language
    if not model.translates or language is None or translation.quality >= MAX_QUALITY:
        return False
    text = translation.source
    if sum(any(map(str.isalpha, text[slice(*word)])) for word in words(text)) < _MIN_WORDS:
        return False
    if text.isupper():
        text = text.lower()
    return known_language(language) and sure_language(text, _MIN_PROB) not in (None, language.split("-")[0])
