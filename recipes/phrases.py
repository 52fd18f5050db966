"""Phrase books of our own: greetings, introductions, dates and times, of which the corpora have few.

`phrases.fr.tsv` has a sentence in French and in English on each line, with slots; before them, what may stand in a slot, in
French and, where it is not the same, in English; `phrases.ko.tsv` the same in Korean. Each sentence is filled many times, as
chance with a fixed seed will have it. What is filled in fits wherever it stands: no French name begins with a vowel, and no
Korean particle follows that would depend on the sound before it.
"""

import random
import re
from collections.abc import Iterator
from pathlib import Path

CLOCK = {"fr": "{} h {}", "ko": "{}시 {}분"}
NUM_TIMES = 60  # that a sentence with slots is filled
SEED = 8


def phrases(language: str) -> Iterator[tuple[str, str]]:
    """Yield sentences of a language with their English, each pair once, the same ones in every run."""
    chance = random.Random(SEED)
    times = [(hour, minute) for hour in range(8, 24) for minute in (15, 20, 30, 45)]
    numbers = {"number": range(2, 99), "date": range(2, 29), "year": range(1900, 2030)}
    choices = {slot: [(str(n), str(n)) for n in some] for slot, some in numbers.items()}
    pairs: dict[tuple[str, str], None] = {}
    for line in Path(__file__).with_suffix(f".{language}.tsv").read_text("utf-8").splitlines():
        text, *columns = line.split("\t")
        if slot := re.fullmatch(r"{(\w+)}", text):
            choices[slot[1]] = list(zip(columns[0].split("|"), columns[-1].split("|"), strict=True))
            if slot[1] == "hour":
                choices["hour"] += [(CLOCK[language].format(*time), "{}:{}".format(*time)) for time in times]
            continue
        used = sorted(set(re.findall(r"{(\w+)}", text)))
        for _ in range(NUM_TIMES if used else 1):
            filled = {slot: chance.choice(choices[slot]) for slot in used}
            there, english = (
                side.format_map({slot: pair[place] for slot, pair in filled.items()})
                for place, side in enumerate((text, columns[0]))
            )
            pairs[there, english] = None
    yield from pairs
