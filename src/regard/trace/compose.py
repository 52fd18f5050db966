"""The sections of a trace document, from what was searched and recorded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.contract import Floats
from regard.search.scores import best_ids, log_normaliser
from regard.search.task import Hypothesis
from regard.search.tree import Tree
from regard.text.tokenizer import Tokenizer
from regard.text.words import Span, match_pieces, words
from regard.trace import document
from regard.trace.document import surfaces
from regard.trace.recorded import LEAST_LOG_PROB, Recorded, entropies
from regard.vocabulary import EOS, NUM_RESERVED

_NUM_CANDIDATES = 10
_NUM_NEAREST = 8


def pieces_of(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Return the pieces of ids, as JSON can write them."""
    return [safe(tokenizer.pieces[id]) for id in ids]


def source_section(
    text: str,
    read: Sequence[tuple[str, int]],
    spans: Sequence[Span],
    num_pieces: int,
    nearest: list[list[str]] | None = None,
) -> document.Source:
    """Return what was read: pieces with their ids, of which the last may be `</s>`."""
    text = safe(text)
    pieces = zip(read, surfaces(text, spans), spans, strict=True)
    return document.Source(
        text=text,
        pieces=[
            document.Piece(piece=safe(piece), id=id, surface=surface, start=start, end=end)
            for (piece, id), surface, (start, end) in pieces
        ],
        words=_words(text, spans, num_pieces),
        nearest=nearest,
    )


def nearest_pieces(tokenizer: Tokenizer, table_VE: Floats, ids: Sequence[int]) -> list[list[str]]:
    """Return, for each id, the pieces whose embeddings have the largest cosine with its own."""
    unit_VE = table_VE / np.maximum(np.linalg.norm(table_VE, axis=1, keepdims=True), 1e-9)
    cosine_SV = unit_VE[list(ids)] @ unit_VE.T
    cosine_SV[:, :NUM_RESERVED] = -np.inf
    cosine_SV[np.arange(len(ids)), list(ids)] = -np.inf
    order_SV = np.argsort(-cosine_SV, axis=1, kind="stable")[:, :_NUM_NEAREST]
    return [
        pieces_of(tokenizer, [id for id in row.tolist() if np.isfinite(cosine_SV[place, id])])
        for place, row in enumerate(order_SV)
    ]


@dataclass(frozen=True, slots=True)
class Answer:
    """A translation: its text, where its pieces stand in it, how many of them were given, what is flagged."""

    text: str
    spans: Sequence[Span]
    num_forced: int
    flags: Sequence[str]


def target_section(tokenizer: Tokenizer, answer: Answer, said: Hypothesis, seen: Recorded) -> document.Target:
    """Return what was said, with the candidates of each step."""
    text, spans = safe(answer.text), answer.spans
    log_prob_TV = seen.logits_TV - log_normaliser(seen.logits_TV)[:, None]
    best_TK = best_ids(seen.logits_TV, _NUM_CANDIDATES)
    entropy_T = -(np.exp(log_prob_TV) * log_prob_TV).sum(axis=1)
    ids = (*said.ids, EOS) if said.complete else said.ids
    chosen_T1 = log_prob_TV[np.arange(len(ids)), ids][:, None]
    rank_T = 1 + (log_prob_TV > chosen_T1).sum(axis=1)
    added, names = surfaces(text, spans), pieces_of(tokenizer, ids)
    pieces = []
    for step, id in enumerate(ids):
        best = best_TK[step].tolist()
        candidates = document.Candidates(
            ids=best,
            pieces=pieces_of(tokenizer, best),
            log_probs=[_short(log_prob_TV[step, one]) for one in best],
        )
        pieces.append(
            document.Said(
                piece=names[step],
                id=id,
                surface=added[step],
                start=spans[step][0],
                end=spans[step][1],
                log_prob=_short(said.log_probs[step]),
                entropy=_short(entropy_T[step]),
                rank=int(rank_T[step]),
                forced=step < answer.num_forced,
                candidates=candidates,
            )
        )
    return document.Target(
        text=text,
        pieces=pieces,
        words=_words(text, spans, len(said.ids)),
        complete=said.complete,
        log_prob=said.log_prob,
        score=said.score,
        flags=list(answer.flags),
    )


def beam_section(tokenizer: Tokenizer, tree: Tree, said: Hypothesis, beam_size: int) -> document.Beam:
    """Return what a beam search tried."""
    names = pieces_of(tokenizer, [node.id for node in tree.nodes])
    return document.Beam(
        size=beam_size,
        nodes=[
            document.Beamed(
                parent=node.parent,
                step=node.step,
                id=node.id,
                piece=name,
                log_prob=_short(node.log_prob),
                score=_short(node.score),
                fate=node.fate,
            )
            for node, name in zip(tree.nodes, names, strict=True)
        ],
        best=tree.path(said.ids, said.complete),
    )


def _words(text: str, spans: Sequence[Span], num_pieces: int) -> list[document.Word]:
    """Return the words with their pieces, `</s>` aside; a mere space belongs to the word after it."""
    found = words(text)
    touched = match_pieces(spans, found)
    pieces_of_word = [list(pieces) for pieces in touched.pieces_of_word]
    for piece, word in enumerate(touched.words_of_piece[:num_pieces]):
        if not word:
            after = next((n for n, (start, _) in enumerate(found) if start >= spans[piece][0]), -1)
            if found:
                pieces_of_word[after] = sorted({*pieces_of_word[after], piece})
    return [
        document.Word(start=start, end=end, pieces=pieces)
        for (start, end), pieces in zip(found, pieces_of_word, strict=True)
        if pieces
    ]


def metrics_section(said: Hypothesis) -> document.Metrics:
    """Return the translation in numbers."""
    how_perplexed = document.perplexity(said.log_prob, len(said.log_probs))
    looks_TS = said.attention_TS.astype(float)
    if not looks_TS.shape[1]:
        return document.Metrics(perplexity=how_perplexed)
    coverage_S = looks_TS.sum(axis=0)
    shares_TS = looks_TS / np.maximum(coverage_S, 1e-12)
    return document.Metrics(
        perplexity=how_perplexed,
        coverage=[_short(one) for one in coverage_S],
        coverage_penalty=float(np.log(np.clip(coverage_S, 1e-4, 1)).sum()),
        coverage_deviation=float(-np.log1p((1 - coverage_S) ** 2).mean()),
        entropy_out=float(entropies(looks_TS).mean()),
        entropy_in=float(entropies(shares_TS.T).mean()),
    )


def safe(text: str) -> str:
    """Return the text with � for halves of surrogate pairs, which JSON cannot say; places stay."""
    return text if text.isascii() else "".join("�" if "\ud800" <= c <= "\udfff" else c for c in text)


def _short(number: Any) -> float:
    """Return a number to six significant digits; what is impossible as a very small log-probability."""
    return float(f"{max(float(number), LEAST_LOG_PROB):.6g}")


def rounded(values_TX: Floats) -> list[list[float]]:
    """Return rows of numbers with as many digits as a reader can use."""
    return [[round(float(value), 4) for value in row] for row in values_TX]
