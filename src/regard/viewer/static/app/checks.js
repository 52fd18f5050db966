// Whether the parts of a trace fit together, so that it can be drawn at all. Whether its numbers are right has been
// checked by regard/trace/checks.py, when the trace was made and when it was read.

/** The name of the first part that does not fit the others; undefined if all fit. */
export function misfit(trace) {
  return [...parts(trace)].find(([, fits]) => !fits)?.[0];
}

function* parts({ source, target, attentions, states, beam, effects, model }) {
  const [S, T] = [source.pieces.length, target.pieces.length];
  yield ["pieces", S > 0 && T > 0];
  for (const [side, { words, pieces }] of Object.entries({ source, target }))
    yield [`${side}.words`, words.every((word) => word.pieces.every((place) => inside(place, pieces.length)))];
  for (const { kind, logs, weights, sums, heads } of Object.values(attentions)) {
    const wanted = { cross: [T, S], encoder: [S, S], decoder: [T, T] }[kind] ?? [];
    const [layers, width] = logs.shape;
    const shape = `${[layers, width, ...wanted]}`;
    yield [kind, layers * width > 0 && shape === `${logs.shape}` && shape === `${weights.shape}`];
    yield [`${kind}.sums`, `${sums.shape}` === `${logs.shape.slice(0, 3)}`];
    yield [`${kind}.heads`, heads.length === layers && heads.every((layer) => layer.length === width)];
  }
  const { reading } = model;
  const [layers, width] = attentions.cross?.logs.shape ?? [0, 0];
  if (reading?.posterior) yield ["reading", "attention.posterior" in states];
  yield ["reading", reading ? inside(reading.layer, layers) && inside(reading.head ?? 0, width) : !layers];
  if (beam) {
    const follows = ({ parent, step }, place) =>
      parent === null ? step === 0 : inside(parent, place) && beam.nodes[parent].step === step - 1;
    yield ["beam", beam.nodes.every(follows) && beam.best.every((place) => inside(place, beam.nodes.length))];
    yield ["beam.best", beam.best.length === T];
  }
  for (const name of effects ? ["erasure", "only_piece", "only_log_prob"] : [])
    yield [`effects.${name}`, !effects[name] || isTable(effects[name], T, source.words.length)];
}

const inside = (place, size) => Number.isInteger(place) && place >= 0 && place < size;
const isTable = (rows, height, width) => rows.length === height && rows.every((row) => row.length === width);
