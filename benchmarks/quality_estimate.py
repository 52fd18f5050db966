"""How well do `quality` and other numbers without reference predict the chrF of a sentence?

    python benchmarks/quality_estimate.py fr-en --fit dev.fr dev.en --test test.fr test.en [--sentences 1000]

Prints Spearman's rank correlation with sentence chrF for each number on each pair of files, and how far the mean of
`quality` is from the mean chrF. The line of `quality` is fitted to the files of `--fit`, which can be given several times,
and printed.
"""

import argparse
from pathlib import Path

import numpy as np
import sacrebleu

import regard
from regard.translate.translator import Translator


def numbers(translator: Translator, paths: list[Path], num: int) -> dict[str, np.ndarray]:
    """Return the chrF of each sentence from 0 to 1, and what may predict it."""
    sources, references = (path.read_text("utf-8").splitlines()[:num] for path in paths)
    rows = [
        {
            "chrF": sacrebleu.sentence_chrf(one.text, [reference]).score / 100,
            "quality": one.quality,
            "score": one.score,
            "log_prob per piece": one.log_prob / max(1, len(one.pieces)),
            "mean confidence": float(np.mean(one.confidence or (0.0,))),
            "coverage": float(np.minimum(one.attention_TS.sum(axis=0), 1).mean()),
            "length ratio": len(one.pieces) / len(one.source_pieces),
        }
        for one, reference in zip(translator.translate(sources), references, strict=True)
        if one.parts
    ]
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Return the rank correlation; equal numbers share their mean rank."""

    def ranks(values: np.ndarray) -> np.ndarray:
        _, place, count = np.unique(values, return_inverse=True, return_counts=True)
        return (np.cumsum(count) - (count - 1) / 2)[place]

    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--fit", nargs=2, type=Path, action="append", default=[])
    parser.add_argument("--test", nargs=2, type=Path, action="append", default=[])
    parser.add_argument("--sentences", type=int, default=1000)
    arguments = parser.parse_args()
    translator = regard.load(arguments.model)
    fitted = []
    for paths in (*arguments.fit, *arguments.test):
        found = numbers(translator, paths, arguments.sentences)
        chrf = found.pop("chrF")
        said = ", ".join(f"{key} {spearman(values, chrf):.2f}" for key, values in found.items())
        off = float(np.mean(found["quality"] - chrf))
        print(f"{paths[0]}: {len(chrf)} sentences, mean chrF {chrf.mean():.3f}, quality off by {off:+.3f}")
        print(f"  Spearman: {said}", flush=True)
        if len(fitted) < len(arguments.fit):
            fitted.append(
                (
                    chrf,
                    np.stack([np.ones(len(chrf)), found["mean confidence"], found["log_prob per piece"]], 1),
                )
            )
    if fitted:
        y, x = np.concatenate([one for one, _ in fitted]), np.concatenate([one for _, one in fitted])
        print(
            "line: bias, per mean confidence, per log-probability:",
            np.linalg.lstsq(x, y, rcond=None)[0].round(3),
        )


if __name__ == "__main__":
    main()
