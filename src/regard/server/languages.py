"""Which languages are served, by which model, and which language a text is in."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regard.loaded import Loaded
from regard.server.errors import ApiError

_NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "cy": "Welsh", "da": "Danish",
    "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish", "et": "Estonian",
    "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish", "gl": "Galician",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "is": "Icelandic",
    "it": "Italian", "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "mt": "Maltese",
    "nl": "Dutch", "no": "Norwegian", "oc": "Occitan", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish",
    "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip

_MAX_CHARACTERS = 1000  # that are looked at


@dataclass(frozen=True, slots=True)
class Route:
    """How to get from one language to another: one model, or two by way of a third language."""

    source: str
    target: str
    models: tuple[str, ...]
    via: str | None = None


def base(code: str) -> str:
    """Return the language of a code such as `fr`, `EN-GB` or `zh_Hans`."""
    return code.strip().lower().replace("_", "-").partition("-")[0]


def name_of(code: str) -> str:
    """Return the English name of a language, or its code."""
    return _NAMES.get(code, code)


class Served:
    """The languages of some models."""

    def __init__(self, models: Mapping[str, Loaded]) -> None:
        self._direct: dict[tuple[str, str], str] = {}
        for name, model in models.items():
            if model.source_language is None or model.target_language is None or not model.translates:
                continue
            pair = base(model.source_language), base(model.target_language)
            # Of several the first, unless one is named after its languages.
            if pair not in self._direct or name == "-".join(pair):
                self._direct[pair] = name
        self.models = dict(models)
        self.sources = sorted({source for source, _ in self._direct})
        self.codes = sorted({code for pair in self._direct for code in pair})

    def targets(self, source: str) -> list[str]:
        """Return the languages that can be reached, the source itself among them."""
        return [target for target in self.codes if target == source or self.find(source, target) is not None]

    def route(self, source: str, target: str) -> Route:
        """Return the way from one language to another, or raise what is missing."""
        for code in (source, target):
            if base(code) not in self.codes:
                raise ApiError(400, f"{code[:20]} is not supported; this server has {', '.join(self.codes)}")
        found = self.find(base(source), base(target))
        if found is None:
            raise ApiError(400, f"there is no model from {source[:20]} to {target[:20]}")
        return found

    def route_of(self, model: str) -> Route:
        """Return the way of a model that is named, or of a pair of languages such as `fr-en`."""
        if (found := self.models.get(model)) is not None:
            return Route(base(found.source_language or "?"), base(found.target_language or "?"), (model,))
        source, hyphen, target = model.lower().partition("-")
        if hyphen and {source, target} <= set(self.codes):
            return self.route(source, target)
        raise ApiError(404, f"there is no model {model[:80]!r}; this server has {', '.join(self.models)}")

    def find(self, source: str, target: str) -> Route | None:
        """Return the way from one language to another, None if there is none."""
        if source == target:
            return Route(source, target, ())
        if (model := self._direct.get((source, target))) is not None:
            return Route(source, target, (model,))
        for middle in self.codes:
            first, second = self._direct.get((source, middle)), self._direct.get((middle, target))
            if first is not None and second is not None:
                return Route(source, target, (first, second), middle)
        return None


@functools.cache
def _identifier(codes: tuple[str, ...]) -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    known = set(identifier.labels) & set(codes)
    if known:
        identifier.set_languages(known)
    return identifier if known else None


def detect(text: str, codes: Sequence[str]) -> list[tuple[str, float]]:
    """Return languages with how likely it is that the text is in them, from 0 to 1, the likeliest first.

    The recogniser's own probabilities mean what they say, also for one word (`benchmarks/detect.py`). Without
    letters all languages are equally likely.
    """
    text = text[:_MAX_CHARACTERS]
    identifier = _identifier(tuple(codes))
    ranked: Iterable[tuple[str, float]] = []
    if identifier is not None and any(map(str.isalpha, text)):
        ranked = identifier.rank(text)
    found = {str(code): float(prob) for code, prob in ranked}
    if not found:
        found = dict.fromkeys(codes, 1 / len(codes)) if codes else {}
    probs = dict.fromkeys(codes, 0.0) | found
    return sorted(probs.items(), key=lambda one: -one[1])
