"""The weights a design has: every name, and the shape of each."""

from collections.abc import Iterator

from regard.options.model import RecurrentOptions, TransformerOptions

Shape = tuple[int, ...]
Shaped = Iterator[tuple[str, Shape]]

# Gates of each cell, by the recurrent matrix they share.
_BLOCKS = {"rnn": (1,), "gru": (2, 1), "gru-after": (3,), "lstm": (4,)}


def weight_shapes(
    options: RecurrentOptions | TransformerOptions, source_vocab: int, target_vocab: int
) -> dict[str, Shape]:
    """Return the shape of every weight by name: what a model file must hold, no more and no less."""
    if options.kind == "recurrent":
        return dict(_recurrent(options, source_vocab, target_vocab))
    return dict(_transformer(options, source_vocab, target_vocab))


def _embeddings(
    options: RecurrentOptions | TransformerOptions, width: int, source_vocab: int, target_vocab: int
) -> Shaped:
    if options.source.kind == "tokens":
        yield "source.weight", (source_vocab, width)
    else:
        yield "source.W_f", (width, options.source.feature_size)
        yield "source.b_f", (width,)
    if options.tie != "all" or options.source.kind != "tokens":
        yield "target.weight", (target_vocab, width)


def _norm(name: str, width: int) -> Shaped:
    yield f"{name}.weight", (width,)
    yield f"{name}.bias", (width,)


def _transformer(options: TransformerOptions, source_vocab: int, target_vocab: int) -> Shaped:
    size, inner = options.hidden_size, options.feed_forward_size
    yield from _embeddings(options, size, source_vocab, target_vocab)
    for part, num_layers in (
        ("encoder", options.num_encoder_layers),
        ("decoder", options.num_decoder_layers),
    ):
        for name in (f"{part}.{layer}" for layer in range(num_layers)):
            if part == "decoder" and options.decoder_self == "ssru":
                yield f"{name}.own.W_CF", (2 * size, size)
                yield f"{name}.own.b_F", (size,)
            else:
                yield f"{name}.own.W_QKV", (3 * size, size)
                yield f"{name}.own.W_O", (size, size)
                if options.biases:
                    yield from ((f"{name}.own.{bias}", (size,)) for bias in ("b_Q", "b_O"))
            yield from _norm(f"{name}.own_sum.norm", size)
            if part == "decoder":
                yield f"{name}.cross.W_Q", (size, size)
                yield f"{name}.cross.W_KV", (2 * size, size)
                yield f"{name}.cross.W_O", (size, size)
                if options.biases:
                    yield from ((f"{name}.cross.{bias}", (size,)) for bias in ("b_Q", "b_O"))
                yield from _norm(f"{name}.cross_sum.norm", size)
            yield f"{name}.feed_forward.W_1", (inner, size)
            yield f"{name}.feed_forward.b_1", (inner,)
            yield f"{name}.feed_forward.W_2", (size, inner)
            yield f"{name}.feed_forward.b_2", (size,)
            yield from _norm(f"{name}.feed_forward_sum.norm", size)
        if options.norm == "pre":
            yield from _norm(f"{part}_norm", size)
    if options.positions.kind == "learned":
        yield "source_positions", (options.positions.max_positions, size)
        yield "target_positions", (options.positions.max_positions, size)
    if options.tie == "none":
        yield "W_o", (target_vocab, size)
    if options.biases:
        yield "b_o", (target_vocab,)


def _recurrent(options: RecurrentOptions, source_vocab: int, target_vocab: int) -> Shaped:
    size, embedding = options.hidden_size, options.embedding_size
    directions = {"both": ("rightward", "leftward"), "forward": ("rightward",), "reversed": ("leftward",)}
    memory = size * len(directions[options.reading])
    yield from _embeddings(options, embedding, source_vocab, target_vocab)
    for layer in range(options.num_layers):
        for direction in directions[options.reading]:
            yield from _cell(options, f"encoder.layers.{layer}.{direction}", memory if layer else embedding)
        yield from _cell(options, f"decoder.cells.{layer}", size if layer else embedding)
    attention = options.attention
    summarises = attention.kind == "none" and attention.context == "every"
    entering, context = (size, size) if summarises else (None, None)
    if attention.kind != "none":
        context = memory
        yield from _scorer(options, memory)
    if attention.kind == "attend-then-step":
        entering = memory
    elif attention.kind == "step-attend-step":
        yield from _cell(options, "decoder.second", memory)
    elif attention.kind == "step-then-attend":
        entering = size if attention.input_feeding else None
        yield "decoder.W_c", (size, memory + size)
    if entering is not None:
        yield "decoder.C", (sum(_BLOCKS[options.cell]) * size, entering)
    if summarises:
        yield "decoder.V", (size, memory)
    for layer in range(options.num_layers):
        if attention.kind == "step-attend-step":
            yield f"decoder.W_s.{layer}", (size, memory)
            if options.layer_norm:
                yield from _norm(f"decoder.norms_of_start.{layer}", size)
            else:
                yield f"decoder.b_s.{layer}", (size,)
        elif summarises or options.reading == "both":
            yield f"decoder.W_s.{layer}", (size, memory if context is None else size)
    yield from _output(options, context, target_vocab)


def _cell(options: RecurrentOptions, name: str, input_size: int) -> Shaped:
    size, blocks = options.hidden_size, _BLOCKS[options.cell]
    yield f"{name}.W", (sum(blocks) * size, input_size)
    for index, block in enumerate(blocks):
        yield f"{name}.U.{index}", (block * size, size)
    if not options.layer_norm:
        yield f"{name}.b", (sum(blocks) * size,)
        if options.cell == "gru-after":
            yield f"{name}.b_U", (size,)
        return
    for index, block in enumerate((sum(blocks), *blocks)):
        yield from _norm(f"{name}.norms.{index}", block * size)
    if options.cell == "lstm":
        yield from _norm(f"{name}.norm_of_memory", size)


def _scorer(options: RecurrentOptions, memory: int) -> Shaped:
    attention, size, name = options.attention, options.hidden_size, "decoder.attention.scorer"
    assert attention.kind != "none"
    if attention.scorer.kind in ("general", "scaled-general"):
        yield f"{name}.W_a", (size, memory)
    elif attention.scorer.kind == "location":
        yield f"{name}.W_a", (attention.scorer.max_positions, size)
    elif attention.scorer.kind == "additive":
        twice = attention.kind == "step-attend-step"
        width = memory if twice else size
        yield f"{name}.W_a", (width, size)
        yield f"{name}.U_a", (width, memory)
        normed = twice and options.layer_norm
        if not normed:
            yield f"{name}.b_a", (width,)
        yield f"{name}.v_a", (width,)
        for part in ("query", "keys") if normed else ():
            yield from _norm(f"{name}.norm_of_{part}", width)
    if attention.window.kind == "local-p":
        yield "decoder.attention.place.W_p", (size, size)
        yield "decoder.attention.place.v_p", (size,)


def _output(options: RecurrentOptions, context: int | None, target_vocab: int) -> Shaped:
    size, embedding = options.hidden_size, options.embedding_size
    tied = options.tie in ("target", "all")
    width = size
    if options.readout != "linear":
        width = embedding if tied or options.readout == "tanh" else size // 2
        sums = 2 * width if options.readout == "maxout" else width
        normed = options.readout == "tanh" and options.layer_norm
        yield "readout.U_o", (sums, size)
        yield "readout.V_o", (sums, embedding)
        if not normed:
            yield "readout.b_m", (sums,)
        if context is not None:
            yield "readout.C_o", (sums, context)
        for name in ("U_o", "V_o", "C_o")[: 2 if context is None else 3] if normed else ():
            yield from _norm(f"readout.norms.{name}", sums)
    if options.tie == "factored" or (tied and width != embedding):
        yield "readout.P_o", (embedding, width)
        width = embedding
    if not tied:
        yield "W_o", (target_vocab, width)
    yield "b_o", (target_vocab,)
