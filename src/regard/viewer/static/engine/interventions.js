// Changes of the running model, and the recorder: the twin of regard/probes.py and regard/trace/interventions.py.
// A probe is given a name, a value and (for attention weights) the step of each row; it returns the value to go on with.

const CHANGED = { head_off: "heads", mask_off: "mask", positions_off: "positions" };

export class RequestError extends Error {}

/** A probe that passes each value through several, in this order. */
export function together(...probes) {
  return (name, value, steps) => probes.reduce((changed, probe) => probe(name, changed, steps), value);
}

/** An engine all of whose translations go through a probe. */
export function tampered(engine, change) {
  const also = (probe) => (probe ? together(change, probe) : change);
  return {
    maxTokens: engine.maxTokens,
    start: (ids, probe, real) => engine.start(ids, also(probe), real),
    step: (state, ids, probe) => engine.step(state, ids, also(probe)),
    force: (ids, read, probe, real) => engine.force(ids, read, also(probe), real),
  };
}

/** A probe that keeps what it sees: `seen.get(name)` has a value for each time. Patterns are as `attention.*`. */
export class Recorder {
  constructor(patterns) {
    this.patterns = patterns.map(matcher);
    this.seen = new Map();
    this.probe = (name, value) => {
      if (this.patterns.some((pattern) => pattern.test(name))) {
        if (!this.seen.has(name)) this.seen.set(name, []);
        this.seen.get(name).push(value);
      }
      return value;
    };
  }
}

export const matcher = (pattern) => new RegExp(`^${pattern.replaceAll(".", "\\.").replaceAll("*", ".*")}$`);

/** Raise an error if the model, or this source, has not what is to be changed. */
export function checkInterventions(interventions, design, pieces) {
  for (const one of interventions) {
    if (one.type === "look") checkRow(one, design, pieces);
    else if (!Object.hasOwn(CHANGED, one.type)) throw new RequestError(`there is no change ${one.type}`);
    else if (!design.parts.includes(CHANGED[one.type]))
      throw new RequestError(`this model has no ${CHANGED[one.type]} to switch off; only a Transformer has`);
    else if (one.type === "head_off") checkHead(design, one.kind ?? "cross", one.layer, one.head);
  }
}

function checkHead(design, kind, layer, head) {
  const layers = design.attentions[kind]?.length ?? 0;
  const within = (place, count) => place === null || (Number.isInteger(place) && place >= 0 && place < count);
  if (!layers) throw new RequestError(`this model has no attention of kind ${kind}`);
  if (!within(layer, layers) || !within(head, design.num_heads))
    throw new RequestError(`there is no layer ${layer + 1}, head ${head + 1}: this model has ${layers} layers of ${design.num_heads} heads`);
}

function checkRow({ step, weights, layer = null, head = null }, design, pieces) {
  if (!design.attentions.cross) throw new RequestError("this model has no attention to force");
  const sum = Array.isArray(weights) ? weights.reduce((total, one) => total + one, 0) : NaN;
  if (!Number.isInteger(step) || step < 0 || weights?.length !== pieces.length)
    throw new RequestError(`${weights?.length} weights and the source has ${pieces.length} pieces; give one for each`);
  if (!(Math.min(...weights) >= 0 && Math.abs(sum - 1) <= 1e-3))
    throw new RequestError(`the weights for step ${step + 1} sum to ${sum}; give weights of 0 or more that sum to 1`);
  if (head !== null && !design.parts.includes("heads")) throw new RequestError("this model has no heads to choose one of");
  checkHead(design, "cross", layer, head);
}

/** The probe of a translation; the mask is lifted only where the whole is read at once. */
export function probeOf(interventions, design, whole) {
  return together(...interventions.map((one) => PROBES[one.type](one, design, whole)));
}

const PROBES = {
  look({ step, weights, layer = null, head = null }, design) {
    const names = design.attentions.cross.filter((_, at) => layer === null || at === layer).map((name) => `${name}.weights`);
    const row = Float32Array.from(weights);
    const forced = (rows, steps) => rows.map((own, at) => (steps[at] === step ? row : own));
    return (name, value, steps) => {
      if (!names.includes(name)) return value;
      // Rows of a recurrent model, or for each head rows.
      if (value[0] instanceof Float32Array) return forced(value, steps);
      return value.map((rows, at) => (head === null || at === head ? forced(rows, steps) : rows));
    };
  },
  head_off({ kind = "cross", layer, head }, design) {
    const wanted = `${design.attentions[kind][layer]}.heads`;
    return (name, value) => {
      if (name !== wanted) return value;
      const width = value[0].length / design.num_heads;
      return value.map((row) => row.slice().fill(0, head * width, (head + 1) * width));
    };
  },
  positions_off: () => (name, value) =>
    name === "source.positions" || name === "target.positions" ? value.map((row) => new Float32Array(row.length)) : value,
  mask_off: (one, design, whole) => (name, value) =>
    whole && /^decoder\..*\.self\.seen$/.test(name) ? value.map((row) => row.slice().fill(1)) : value,
};
