// The tokenizer: the twin of regard/text (normalize.py, segment.py, tokenizer.py, words.py).
// Places count characters as Python does, by code point: texts are arrays of characters here.

export const [PAD, BOS, EOS, UNK] = [0, 1, 2, 3];
export const FIRST_BYTE = 4;
export const NUM_RESERVED = FIRST_BYTE + 256;
const SPACE = "▁";
const UNKNOWN = "⁇";
const RESERVED = ["<pad>", "<s>", "</s>", "<unk>", ...Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`)];

const INVISIBLE = /[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u200b\u2060\ufeff]/;
const WHITE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
const JOINS = /[\p{M}\u1160-\u11ff\ud7b0-\ud7ff]/u;
const QUOTES = new Map([...Array.from("’‘´`‚‛ʼ", (sign) => [sign, "'"]), ...Array.from("“”„‟″", (sign) => [sign, '"'])]);

/** A text as every tokenizer reads it: its characters, and the span of each in the original. */
export function normalize(text, { foldQuotes = false } = {}) {
  const [characters, origin] = [[], []];
  for (const { segment, start, end } of segments(Array.from(text))) {
    const composed = Array.from(segment.normalize("NFC"), (one) => (foldQuotes && QUOTES.get(one)) || one);
    const unchanged = composed.join("") === segment && composed.length === end - start;
    composed.forEach((plain, offset) => {
      // A segment that NFC changed is one unit: each of its characters stands for all of it.
      const place = unchanged ? [start + offset, start + offset + 1] : [start, end];
      const white = WHITE.test(plain);
      if (white && characters.at(-1) === " ") origin.at(-1)[1] = place[1];
      else characters.push(white ? " " : plain), origin.push(place);
    });
  }
  if (characters.at(-1) === " ") characters.pop(), origin.pop();
  if (characters[0] === " ") characters.shift(), origin.shift();
  return { characters, origin };
}

/** Runs that NFC treats on their own, without invisible characters. */
function segments(characters) {
  const found = [];
  characters.forEach((character, place) => {
    if (INVISIBLE.test(character)) return;
    const last = found.at(-1);
    if (last && JOINS.test(character)) Object.assign(last, { segment: last.segment + character, end: place + 1 });
    else found.push({ segment: character, start: place, end: place + 1 });
  });
  return found;
}

/** The characters of the original that became these of a normalised text. */
export function toOriginal({ origin }, [start, end], length) {
  if (start < end) return [origin[start][0], origin[end - 1][1]];
  const place = start < origin.length ? origin[start][0] : length;
  return [place, place];
}

// Characters that travel as bytes: the sign of a space, lone surrogates, line feeds.
const isRaw = (character) => character === SPACE || character === "\n" || (character >= "\ud800" && character <= "\udfff" && character.length === 1);

export class Tokenizer {
  constructor(options, pieces, segment) {
    if (RESERVED.some((piece, id) => pieces[id] !== piece) || pieces.indexOf(SPACE) < NUM_RESERVED)
      throw new Error("the pieces are not those of a regard tokenizer; it may be damaged");
    this.pieces = pieces;
    this.opens = Boolean(options.elisions);
    this.segment = segment;
    this.letters = pieces.map((piece) => Array.from(piece));
  }

  static fromBytes(bytes) {
    const line = bytes.indexOf(10);
    const { format, options } = JSON.parse(new TextDecoder().decode(bytes.subarray(0, line)));
    if (format !== "regard-tokenizer/1") throw new Error(`tokenizer of format ${format}`);
    const body = bytes.subarray(line + 1);
    if (options.kind === "unigram" || options.kind === "bpe") {
      const vocabulary = readSentencePiece(body);
      const segment = (options.kind === "bpe" ? bpe : unigram)(vocabulary);
      return new Tokenizer(options, vocabulary.map(({ piece }) => piece), segment);
    }
    const pieces = [...RESERVED, ...new TextDecoder("utf-8", { ignoreBOM: true }).decode(body).split("\n")];
    return new Tokenizer(options, pieces, table(pieces, SPLITS[options.kind], options.unknown));
  }

  /** The ids of characters, and the span of each among them. */
  encode(characters) {
    const opened = this.opens ? open(characters) : { characters, added: [] };
    const ids = this.whole(opened.characters);
    const spans = this.walk(ids, opened.characters);
    return { ids, spans: without(spans, opened.added) };
  }

  whole(characters) {
    if (!characters.length) return [];
    const ids = [];
    let run = [" "];
    for (const character of characters) {
      if (!isRaw(character)) run.push(character);
      else ids.push(...this.segment(run), ...bytesOf(character)), (run = []);
    }
    return [...ids, ...this.segment(run)];
  }

  /** The characters each piece covers, by walking over the text beside the pieces. */
  walk(ids, characters) {
    const spans = [];
    let [place, missing] = [-1, 0]; // of the space in front; bytes still to come of the character at `place`
    for (const id of ids) {
      if (isByte(id)) {
        missing ||= bytesOf(characters[place]).length;
        spans.push([place, place + 1]);
        if (--missing === 0) place++;
        continue;
      }
      const length = id === UNK ? unknownLength(characters, place) : this.letters[id].length;
      let start = place;
      if (length > 1 && (start < 0 || characters[start] === " ")) start++;
      place += length;
      spans.push([Math.max(start, 0), Math.max(place, 0)]);
    }
    return spans;
  }

  surface(id) {
    if (isByte(id)) return Uint8Array.of(id - FIRST_BYTE);
    if (id < NUM_RESERVED) return new TextEncoder().encode(id === UNK ? UNKNOWN : "");
    return new TextEncoder().encode(this.pieces[id].replaceAll(SPACE, " "));
  }

  /** The text of ids, and which of its characters each id gave. */
  decode(ids) {
    const surfaces = ids.map((id) => this.surface(id));
    const text = Array.from(decoded(joined(surfaces)));
    if (text[0] === " ") text.shift();
    const spans = [];
    let place = surfaces[0]?.[0] === 32 ? -1 : 0;
    for (let at = 0; at < ids.length; ) {
      let end = at + 1;
      if (isByte(ids[at])) {
        while (end < ids.length && isByte(ids[end])) end++;
        const given = Array.from(decoded(joined(surfaces.slice(at, end))));
        const sizes = given.map((character) => bytesOf(character).length);
        const whole = !given.includes("\ufffd") && sizes.reduce((sum, size) => sum + size, 0) === end - at;
        if (whole) given.forEach((_, n) => spans.push(...Array(sizes[n]).fill([Math.max(place + n, 0), Math.max(place + n + 1, 0)])));
        else spans.push(...Array(end - at).fill([Math.max(place, 0), place + given.length]));
        place += given.length;
      } else {
        const letters = Array.from(decoded(surfaces[at]));
        const start = place + (letters.length > 1 && letters[0] === " " ? 1 : 0);
        place += letters.length;
        spans.push([Math.max(start, 0), Math.max(place, 0)]);
      }
      at = end;
    }
    if (!this.opens) return { text: text.join(""), spans };
    const removed = elisions(text).filter(({ spaces }) => spaces).map(({ end }) => end - 1);
    return { text: text.filter((_, at) => !removed.includes(at)).join(""), spans: without(spans, removed) };
  }
}

const isByte = (id) => id >= FIRST_BYTE && id < NUM_RESERVED;
const decoded = (bytes) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

function joined(parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let place = 0;
  for (const part of parts) whole.set(part, place), (place += part.length);
  return whole;
}

/** The ids of a character's bytes; half of a surrogate pair has three. */
function bytesOf(character) {
  const code = character.codePointAt(0);
  const lone = code >= 0xd800 && code <= 0xdfff;
  const bytes = lone ? [0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)] : new TextEncoder().encode(character);
  return Array.from(bytes, (byte) => FIRST_BYTE + byte);
}

const ELISION = /(?<![\p{L}\p{N}_])(?:[cdjlmnst]|[\p{L}\p{Nl}\p{No}]{0,8}qu)['’]( *)(?=[\p{L}\p{Nl}\p{No}])/giu;

/** Elided words: where each ends, with the spaces behind it. */
function elisions(characters) {
  const text = characters.join("");
  return Array.from(text.matchAll(ELISION), (found) => ({
    end: Array.from(text.slice(0, found.index + found[0].length)).length,
    spaces: found[1].length,
  }));
}

/** Put one more space behind every elided word. */
function open(characters) {
  const ends = elisions(characters).map(({ end }) => end);
  const opened = characters.slice();
  ends.toReversed().forEach((end) => opened.splice(end, 0, " "));
  return { characters: opened, added: ends.map((end, n) => end + n) };
}

/** Spans of a text as spans of the text without the characters at these places. */
function without(spans, removed) {
  if (!removed.length) return spans;
  const before = (place) => removed.filter((one) => one < place).length;
  return spans.map(([start, end]) => [start - before(start), end - before(end)]);
}

/** The pieces of a SentencePiece model (a protocol buffer): field 1 is a piece, its score and its type. */
function readSentencePiece(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const pieces = [];
  for (const { field, start, end } of fields(bytes, 0, bytes.length)) {
    if (field !== 1) continue;
    const entry = { piece: "", score: 0, type: 1 };
    for (const one of fields(bytes, start, end)) {
      if (one.field === 1) entry.piece = decoded(bytes.subarray(one.start, one.end));
      if (one.field === 2) entry.score = view.getFloat32(one.start, true);
      if (one.field === 3) entry.type = one.value;
    }
    pieces.push(entry);
  }
  return pieces;
}

function* fields(bytes, at, end) {
  const number = () => {
    for (let [value, shift] = [0, 0]; ; shift += 7) {
      if (at >= end || shift > 49) throw new Error("not a SentencePiece model");
      const byte = bytes[at++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  while (at < end) {
    const tag = number();
    const [field, wire] = [Math.floor(tag / 8), tag & 7];
    const value = wire === 0 ? number() : null;
    const size = { 0: 0, 1: 8, 2: wire === 2 ? number() : 0, 5: 4 }[wire];
    if (size === undefined || at + size > end) throw new Error("not a SentencePiece model");
    yield { field, value, start: at, end: at + size };
    at += size;
  }
}

const NORMAL = 1; // the type of a learnt piece
const UNKNOWN_PENALTY = 10; // below the least likely piece, as in SentencePiece

/** Kudo 2018: the segmentation with the highest sum of log-probabilities, found by Viterbi. */
function unigram(vocabulary) {
  const learnt = new Map();
  let [least, longest] = [Infinity, 1];
  vocabulary.forEach(({ piece, score, type }, id) => {
    if (type !== NORMAL) return;
    learnt.set(piece, { id, score });
    least = Math.min(least, score);
    longest = Math.max(longest, Array.from(piece).length);
  });
  const unknown = Math.fround(least - UNKNOWN_PENALTY);
  return (run) => {
    const characters = run.map((character) => (character === " " ? SPACE : character));
    const best = [{ score: 0, start: -1, id: null }, ...characters.map(() => null)];
    for (let start = 0; start < characters.length; start++) {
      const so_far = best[start].score;
      const offer = (end, score, id) => {
        const total = Math.fround(so_far + score);
        if (!best[end] || total > best[end].score) best[end] = { score: total, start, id };
      };
      let piece = "";
      for (let end = start + 1; end <= Math.min(start + longest, characters.length); end++) {
        piece += characters[end - 1];
        const found = learnt.get(piece);
        if (found) offer(end, found.score, found.id);
        else if (end === start + 1) offer(end, unknown, null);
      }
    }
    const ids = [];
    for (let end = characters.length; end > 0; end = best[end].start)
      ids.unshift(...(best[end].id === null ? bytesOf(characters[end - 1]) : [best[end].id]));
    return ids;
  };
}

/** Sennrich et al. 2016: of all neighbours the best known pair is joined, and of equals the first. */
function bpe(vocabulary) {
  const learnt = new Map(vocabulary.map(({ piece, score, type }, id) => [type === NORMAL ? piece : null, { id, score }]));
  learnt.delete(null);
  return (run) => {
    const pieces = run.map((character) => (character === " " ? SPACE : character));
    for (;;) {
      let [at, score] = [-1, -Infinity];
      for (let n = 0; n + 1 < pieces.length; n++) {
        const found = learnt.get(pieces[n] + pieces[n + 1]);
        if (found && found.score > score) [at, score] = [n, found.score];
      }
      if (at < 0) break;
      pieces.splice(at, 2, pieces[at] + pieces[at + 1]);
    }
    return pieces.flatMap((piece) => learnt.get(piece)?.id ?? Array.from(piece).flatMap(bytesOf));
  };
}

/** Whole words or characters, looked up; what is not there becomes bytes or `<unk>`. */
function table(pieces, split, unknown) {
  const ids = new Map(pieces.map((piece, id) => [piece, id]).slice(NUM_RESERVED));
  return (run) =>
    split(run).flatMap((piece) => {
      if (ids.has(piece)) return ids.get(piece);
      if (unknown === "unk") return UNK;
      const rest = Array.from(piece);
      const space = rest[0] === SPACE ? [ids.get(rest.shift())] : [];
      return [...space, ...rest.flatMap(bytesOf)];
    });
}

function splitWords(run) {
  const marked = run.map((character) => (character === " " ? SPACE : character));
  const pieces = [];
  let place = 0;
  for (const [start, end] of words(run.join(""))) {
    const joins = start > place && run[start - 1] === " ";
    pieces.push(...marked.slice(place, start - joins), (joins ? SPACE : "") + marked.slice(start, end).join(""));
    place = end;
  }
  return [...pieces, ...marked.slice(place)];
}

const SPLITS = { word: splitWords, character: (run) => run.map((character) => (character === " " ? SPACE : character)) };

/** The length of the word, with the space before it, that `<unk>` stands for at this place. */
function unknownLength(characters, place) {
  const rest = [" ", ...characters].slice(place + 1);
  const raw = rest.findIndex(isRaw);
  return Array.from(splitWords(raw < 0 ? rest : rest.slice(0, raw))[0]).length;
}

const W = String.raw`\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d`;
const LETTERS = String.raw`[[\p{L}\p{M}\p{N}_]--\p{Script=Han}]`;
const WORD = new RegExp(
  [
    String.raw`(?:https?:\/\/|www\.)[^\p{White_Space}<>"«»]*[\p{L}\p{N}\/]`,
    String.raw`(?<![${W}.+\-])[${W}.+\-]{1,64}@[${W}\-]{1,64}(?:\.[${W}\-]{1,64}){1,8}`,
    String.raw`%\([${W}]+\)[sdif]|%[sdif](?![${W}])|\{[${W}]*\}`,
    String.raw`\p{N}+(?:[.,:]\p{N}+)+`,
    String.raw`(?:[ldjnsctm]|(?<![${W}])\p{L}{0,8}qu|[dnsc]?[aeou]ll|un)['’](?=[\p{L}\p{N}])`,
    String.raw`\p{Script=Han}`,
    String.raw`${LETTERS}+(?:['’\-\u2010\u2011]${LETTERS}+)*`,
    String.raw`([^\p{White_Space}\p{L}\p{N}])\1+`,
    String.raw`\P{White_Space}`,
  ].join("|"),
  "giv",
);
const GRAPHEMES = globalThis.Intl?.Segmenter ? new Intl.Segmenter("en", { granularity: "grapheme" }) : null;

/** The words of a text as spans; between them there is nothing but white space. */
export function words(text) {
  const spans = [];
  let [place, count] = [0, 0]; // in UTF-16 units, and in characters
  WORD.lastIndex = 0;
  for (let found; (found = WORD.exec(text)); ) {
    let [start, whole] = [found.index, found[0]];
    // One sign alone is all that a reader sees as one: flags and joined emoji are whole.
    if (Array.from(whole).length === 1 && !/[\p{L}\p{M}\p{N}_]/u.test(whole) && GRAPHEMES)
      whole = GRAPHEMES.segment(text.slice(start, start + 64))[Symbol.iterator]().next().value.segment;
    count += Array.from(text.slice(place, start)).length;
    const length = Array.from(whole).length;
    spans.push([count, count + length]);
    count += length;
    place = WORD.lastIndex = start + whole.length;
  }
  return spans;
}
