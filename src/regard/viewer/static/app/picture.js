// The heat map as it is shown, as a file: SVG, PNG or CSV, made in the page, so that no engine is needed.

import { s } from "#app/dom";
import { t, fixed, percent, signed as withSign } from "#app/i18n";
import { css, inkOn, shaded } from "#app/colours";
import { boundsOf, strongest } from "#app/heatmap";
import { grid, measures, probs, reversals } from "#app/views";

export const FORMS = ["svg", "png", "csv"];

const SIDE = 30; // of a cell, in pixels
const GAP = 8;
const MOST_LABEL = 220; // pixels; a longer name is cut
const SCALE = 2; // pixels of a PNG for one of the picture
const FONT = "14px system-ui, 'Noto Sans KR', 'Apple SD Gothic Neo', 'Malgun Gothic', sans-serif";
const [INK, SOFT, NOW, BLOCK] = ["#1a1d21", "#5a6169", "#c2410c", "#009e73"];

/** What is shown, as a file of a form. */
export async function picture(form, trace, state) {
  if (!measures(trace, state).includes(state.measure)) throw new Error("heatmap.none");
  const current = grid(trace, state);
  if (form === "csv") return new Blob([csv(current)], { type: "text/csv" });
  const drawn = svg(trace, state, current);
  const text = new XMLSerializer().serializeToString(drawn);
  if (form === "svg") return new Blob([text], { type: "image/svg+xml" });
  return png(text, Number(drawn.getAttribute("width")), Number(drawn.getAttribute("height")));
}

/** A row for each row of the map; what may not be looked at is empty. The same as `Trace.to_csv`. */
function csv({ matrix, rows, columns }) {
  const numbers = matrix.map((line) => line.map((value) => (Number.isNaN(value) ? "" : value.toFixed(4))));
  return [["", ...columns.map(cell)], ...rows.map((name, r) => [cell(name), ...numbers[r]])]
    .map((line) => `${line.map((one) => (/[",\r\n]/.test(one) ? `"${one.replaceAll('"', '""')}"` : one)).join()}\n`)
    .join("");
}

/** What a spreadsheet would take for a formula gets a quote first; a number stays a number. */
const cell = (text) => (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);

function svg(trace, state, current) {
  const { matrix, rows, columns, texts, signed, kind, by } = current;
  const [bounds, now] = [boundsOf(current, state.scaled), current.rowOf(state.step)];
  const shares = kind === "cross" ? probs(trace.target, by) : null;
  const side = texts ? Math.max(SIDE, widest(texts.flat()) + GAP) : SIDE;
  const left = widest(rows) + (shares ? 50 : 0) + 2 * GAP;
  const title = `${trace.source.text} → ${trace.target.text}`;
  const under = `${trace.model.label}: ${t(`view.${state.view}`)}, ${t(`measure.${state.measure}`)}`;
  const top = widest(columns) + 2 * GAP + 24;
  const width = Math.max(left + columns.length * side + GAP, Math.min(900, wide(under) + 2 * GAP));
  const height = top + rows.length * SIDE + 3 * GAP + 16;
  const text = (x, y, more, content) => s("text", { x, y, fill: INK, ...more }, content);
  const cells = matrix.flatMap((line, r) => {
    const best = strongest(line, state.measure);
    return line.map((value, c) => {
      const [x, y] = [left + c * side, top + r * SIDE];
      const name = s("title", null, `${rows[r]} ← ${columns[c]}: ${signed ? withSign(value) : fixed(value)}`);
      const box = { x, y, width: side - 1, height: SIDE - 1 };
      if (Number.isNaN(value)) return s("rect", { ...box, fill: "none", stroke: "#ccc", "stroke-dasharray": "2 3" });
      const colour = shaded(value, bounds[r], signed, false);
      const middle = { x: x + side / 2, y: y + SIDE / 2 + 5, fill: inkOn(colour), "text-anchor": "middle" };
      const said = texts ? texts[r][c] : state.numbers ? number(value, signed) : null;
      return s("g", null, name, s("rect", { ...box, fill: css(colour) }),
        said !== null ? s("text", { ...middle, "font-size": texts ? 13 : 11 }, said)
          : c === best ? s("circle", { cx: middle.x, cy: y + SIDE / 2, r: 3, fill: middle.fill }) : null);
    });
  });
  const frame = (x, y, w, h, stroke) => s("rect", { x, y, width: w, height: h, fill: "none", stroke, "stroke-width": 2 });
  const [pinned, at] = state.pin ?? [];
  return s("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", style: { font: FONT } },
    s("title", null, title), s("desc", null, under),
    s("rect", { width, height, fill: "#fff" }),
    text(GAP, 20, { "font-size": 13, fill: SOFT }, cut(under, width - 2 * GAP)),
    columns.map((name, c) => {
      const [x, y] = [left + c * side + side / 2 + 5, top - GAP];
      return text(x, y, { transform: `rotate(-90 ${x} ${y})`, lang: trace.model.source_language }, cut(name));
    }),
    rows.map((name, r) => {
      const y = top + r * SIDE + SIDE / 2 + 5;
      const weight = r === now ? { "font-weight": 700, fill: NOW } : {};
      return [
        text(left - GAP - (shares ? 50 : 0), y, { "text-anchor": "end", ...weight }, cut(name)),
        shares ? text(left - GAP, y, { "text-anchor": "end", "font-size": 11, fill: SOFT }, percent(shares[r])) : null,
      ];
    }),
    cells,
    reversals(current).map((one) =>
      s("rect", { x: left + one.column * side, y: top + one.row * SIDE, width: one.width * side - 1, height: one.height * SIDE - 1,
        fill: "none", stroke: BLOCK, "stroke-width": 2, "stroke-dasharray": "5 3", rx: 4 })),
    now >= 0 ? frame(left - 1, top + now * SIDE - 1, columns.length * side + 1, SIDE + 1, NOW) : null,
    matrix[pinned]?.[at] === undefined ? null : [
      frame(left + at * side, top + pinned * SIDE, side - 1, SIDE - 1, "#000"),
      text(GAP, height - GAP - 4, { class: "pinned", "font-size": 13 },
        `${rows[pinned]} ← ${columns[at]}: ${signed ? withSign(matrix[pinned][at]) : fixed(matrix[pinned][at])}`),
    ],
  );
}

const number = (value, signed) => (signed ? withSign(value, 1) : fixed(value, 2).replace(/^0/, ""));

const pen = () => Object.assign(document.createElement("canvas").getContext("2d"), { font: FONT });
const wide = (text) => Math.ceil(pen().measureText(text).width);
const widest = (texts) => Math.min(MOST_LABEL, Math.max(0, ...texts.map(wide)));

/** A text that is no wider than this. */
function cut(text, most = MOST_LABEL) {
  const letters = Array.from(text);
  if (wide(text) <= most) return text;
  while (letters.length && wide(`${letters.join("")}…`) > most) letters.pop();
  return `${letters.join("")}…`;
}

/** The picture in pixels. */
async function png(text, width, height) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: SCALE * width, height: SCALE * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
