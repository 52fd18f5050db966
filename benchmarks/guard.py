"""Does the guard see what was left out, and leave alone what was not; and what does trying again do to BLEU?

    python benchmarks/guard.py en-de.regard val.en val.de [--sentences 400]

Left out on purpose: of two sentences joined, only the first is translated; of one sentence, the last third of the
translation is missing. Sound: the references, and what the model says itself. All are given to the model as
translations (forced decoding) and judged as any translation is.
"""

import argparse
from collections import Counter
from pathlib import Path

import regard
from regard.evaluation.scores import score
from regard.translate.guard import Said, judge
from regard.translate.translator import Translator


def share_uncovered(translator: Translator, sources: list[str], targets: list[str]) -> float:
    """Return how many of these translations the guard finds to leave something out, in percent."""
    tokenizer = translator.model.tokenizers.source
    num, id_of = 0, {piece: id for id, piece in enumerate(tokenizer.pieces)}
    for one in translator.force(sources, targets):
        (part,) = one.parts
        ids = [id_of[piece] for piece in part.source_pieces[:-1]]
        said = Said(
            one.source,
            one.text,
            ids,
            tokenizer.information_V[ids],
            range(len(part.pieces) - 1),
            part.attention_TS,
            True,
        )
        num += "uncovered" in judge(said).flags
    return 100 * num / len(sources)


def shortened(text: str) -> str:
    """Return a text without the last third of its words."""
    words = text.split()
    return " ".join(words[: max(1, round(len(words) * 2 / 3))]) + "."


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("files", nargs=2, type=Path)
    parser.add_argument("--sentences", type=int, default=400)
    arguments = parser.parse_args()
    translator = regard.load(arguments.model)
    sources, references = (
        path.read_text("utf-8").splitlines()[: arguments.sentences] for path in arguments.files
    )
    without = translator.translate(sources, guard=False)
    said = [one.text for one in without]
    joined = [f"{a} {b}" for a, b in zip(sources[::2], sources[1::2], strict=False)]
    print("found to leave something out, in percent")
    print(f"  half of it missing       {share_uncovered(translator, joined, said[::2][: len(joined)]):5.1f}")
    print(
        f"  a third of it missing    {share_uncovered(translator, sources, list(map(shortened, said))):5.1f}"
    )
    print(f"  references               {share_uncovered(translator, sources, references):5.1f}")
    print(f"  what the model says      {share_uncovered(translator, sources, said):5.1f}")
    guarded = translator.translate(sources)
    print(f"BLEU without the guard {score(said, references).bleu:.2f}, ", end="")
    print(f"with it {score([one.text for one in guarded], references).bleu:.2f}; ", end="")
    print(f"{sum(a.text != b.text for a, b in zip(without, guarded, strict=True))} of {len(sources)} differ")
    print(f"flags without {dict(Counter(flag for one in without for flag in one.flags))}")
    print(f"flags with    {dict(Counter(flag for one in guarded for flag in one.flags))}")


if __name__ == "__main__":
    main()
