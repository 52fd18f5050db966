// BLEU by length of the source, a line for each model.

import { h, s } from "#app/dom";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [420, 190, 30, 26, 10];
const NUM_STYLES = 6; // of lines: colour and dashes, in the style sheet

/** The chart of `lines`, each `{ name, bleu }` with a number or null for each of the `bins`. */
export function chart({ bins, lines, label }) {
  const high = Math.max(1, ...lines.flatMap((line) => line.bleu.filter(Number.isFinite))) * 1.1;
  const step = (WIDTH - LEFT - 30) / Math.max(1, bins.length - 1);
  const x = (at) => LEFT + 12 + at * step;
  const y = (value) => HEIGHT - BOTTOM - (value / high) * (HEIGHT - BOTTOM - TOP);
  const marks = Array.from({ length: Math.floor(high / 10) + 1 }, (_, at) => 10 * at);
  return h(
    "figure",
    { class: "lengths-of" },
    s(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img", "aria-label": label },
      marks.map((mark) => [
        s("line", { x1: LEFT, x2: WIDTH - 4, y1: y(mark), y2: y(mark), class: "rule" }),
        s("text", { x: LEFT - 6, y: y(mark) + 4, "text-anchor": "end" }, mark),
      ]),
      bins.map((bin, at) => s("text", { x: x(at), y: HEIGHT - 8, "text-anchor": "middle" }, bin)),
      lines.map((line, number) => {
        const points = line.bleu.flatMap((value, at) => (Number.isFinite(value) ? [[x(at), y(value)]] : []));
        return s(
          "g",
          { class: `l${number % NUM_STYLES}` },
          s("polyline", { class: "line", points: points.map((point) => point.join()).join(" ") }),
          points.map(([cx, cy]) => s("circle", { cx, cy, r: 3.5 })),
        );
      }),
    ),
    h(
      "figcaption",
      { class: "legend" },
      lines.map((line, number) =>
        h(
          "span",
          null,
          s("svg", { class: "chart key", viewBox: "0 0 34 10", "aria-hidden": "true" }, s("g", { class: `l${number % NUM_STYLES}` }, s("path", { class: "line", d: "M1 5H33" }))),
          h("bdi", null, line.name),
        ),
      ),
    ),
  );
}
