// The tree of the search: a column for each step, the best hypotheses of it on top.

import { h, s, piece as signs, printable } from "#app/dom";
import { t, fixed } from "#app/i18n";

export const name = "beam";
export const inputs = (state) => [state.step];

const [WIDTH, HEIGHT, LEFT, TOP, LETTERS] = [130, 26, 18, 30, 10];

export function draw({ trace, state, live, id }) {
  const { beam } = trace;
  if (!beam) return h("section", { class: "panel beam", hidden: true });
  const places = layout(beam);
  const best = new Set(beam.best);
  const steps = 1 + beam.nodes.reduce((most, node) => Math.max(most, node.step), 0);
  const height = TOP + HEIGHT * (1 + places.reduce((most, { rank }) => Math.max(most, rank), 0));
  return h(
    "section",
    { class: "panel beam", "aria-labelledby": `${id}-beam` },
    h(
      "div",
      { class: "row-of" },
      h("h2", { id: `${id}-beam` }, t("beam")),
      h("span", { class: "hint" }, t("beam.hint", { size: beam.size, count: beam.nodes.length })),
    ),
    h(
      "div",
      { class: "scroll box" },
      s(
        "svg",
        {
          class: "tree",
          role: "tree",
          "aria-label": t("beam"),
          width: LEFT + WIDTH * steps,
          height: height,
          onkeydown: (event) => (event.key === "Enter" && live ? goOn(event, trace, live) : walk(event, beam)),
          ondblclick: live ? (event) => goOn(event, trace, live) : null,
          onfocusin: (event) => tell(event.target, trace),
          onclick: picked,
        },
        Array.from({ length: steps }, (_, step) =>
          s("text", { class: `column${step === state.step ? " now" : ""}`, x: LEFT + WIDTH * step, y: 14 }, step + 1),
        ),
        beam.nodes.map((node, number) =>
          node.parent === null
            ? null
            : edge(
                places[node.parent],
                places[number],
                width(beam.nodes[node.parent], best.has(node.parent)),
                best.has(number) && best.has(node.parent),
                node.fate,
              ),
        ),
        beam.nodes.map((node, number) => one(node, number, places[number], best, state.step, trace)),
      ),
    ),
    h("output", { class: "readout" }, t(live ? "beam.live" : "beam.readout")),
    h(
      "div",
      { class: "legend" },
      [
        ["best", "best"],
        ["open", ""],
        ["dropped", "dropped"],
        ["finished", "finished"],
      ].map(([fate, cls]) =>
        h(
          "span",
          null,
          s(
            "svg",
            { class: "tree key", width: 16, height: 16, "aria-hidden": "true" },
            s("g", { class: `node ${cls}` }, sign(fate, 8, 8)),
          ),
          t(`fate.${fate}`),
        ),
      ),
    ),
  );
}

/** Let the decoder go on from a hypothesis. */
function goOn(event, trace, live) {
  const node = event.target.closest?.(".node");
  if (!node) return;
  event.preventDefault();
  const pieces = [];
  for (let at = Number(node.dataset.node); at !== null; at = trace.beam.nodes[at].parent)
    pieces.unshift(trace.beam.nodes[at].piece);
  const text = pieces.filter((one) => one !== "</s>").join("").replace(/▁/g, " ").trim();
  live.change({ type: "prefix", text }, pieces.length - 1);
}

/** The place of each hypothesis: its step, and its rank by score among those of its step. */
function layout({ nodes }) {
  const places = nodes.map(() => null);
  const bySteps = new Map();
  nodes.forEach(({ step }, number) => bySteps.set(step, [...(bySteps.get(step) ?? []), number]));
  for (const [step, numbers] of bySteps) {
    // What was dropped comes below, whatever its score.
    const order = numbers.sort(
      (one, other) =>
        (nodes[one].fate === "dropped") - (nodes[other].fate === "dropped") || nodes[other].score - nodes[one].score,
    );
    order.forEach(
      (number, rank) => (places[number] = { rank, x: LEFT + WIDTH * step, y: TOP + HEIGHT * (rank + 0.5) }),
    );
  }
  return places;
}

const label = (piece) =>
  Array.from(piece).length > LETTERS
    ? `${Array.from(piece)
        .slice(0, LETTERS - 1)
        .join("")}…`
    : piece;

/** About how wide a hypothesis is drawn: its line to the next begins after its name. */
function width(node, best) {
  const ems = Array.from(label(printable(node.piece))).reduce(
    (sum, letter) => sum + (letter > "\u2e7f" ? 1 : letter === "▁" ? 0.78 : 0.6),
    0,
  );
  return 15 + 12.5 * (best ? 1.12 * ems + 1.3 : ems);
}

function edge(from, to, room, best, fate) {
  const start = Math.min(from.x + room, to.x - 22);
  const end = to.x - 8;
  const middle = (start + end) / 2;
  const d = `M${start.toFixed(1)},${from.y}C${middle.toFixed(1)},${from.y} ${middle.toFixed(1)},${to.y} ${end},${to.y}`;
  return s("path", { class: `edge${best ? " best" : fate === "dropped" ? " dropped" : ""}`, d });
}

function sign(fate, x, y) {
  return fate === "finished"
    ? s("rect", { x: x - 5, y: y - 5, width: 10, height: 10 })
    : s("circle", { cx: x, cy: y, r: 5 });
}

function one(node, number, { x, y }, best, step, trace) {
  const piece = printable(node.piece);
  const onBest = best.has(number);
  return s(
    "g",
    {
      class: `node ${node.fate}${onBest ? " best" : ""}`,
      role: "treeitem",
      "aria-level": node.step + 1,
      "data-node": number,
      tabindex: onBest && node.step === Math.min(step, best.size - 1) ? 0 : -1,
      "aria-label": described(node, onBest),
    },
    s("title", null, described(node, onBest)),
    s("rect", { class: "reach", x: x - 10, y: y - 12, width: WIDTH - 22, height: 24 }),
    sign(node.fate, x, y),
    s(
      "text",
      { x: x + 10, y: y + 4, lang: trace.model.target_language, "aria-hidden": "true" },
      onBest ? "★ " : "",
      signs(label(piece), s),
    ),
  );
}

function described(node, onBest) {
  return t("beam.node", {
    piece: printable(node.piece),
    step: node.step + 1,
    log_prob: fixed(node.log_prob),
    score: fixed(node.score),
    fate: t(`fate.${node.fate}`),
    best: onBest ? t("beam.on_best") : "",
  });
}

/** Say what a hypothesis says in all, and how it fared. */
function tell(target, trace) {
  const group = target.closest("g.node");
  if (!group) return;
  const { beam } = trace;
  const words = [];
  for (let at = Number(group.dataset.node); at !== null; at = beam.nodes[at].parent)
    words.unshift(printable(beam.nodes[at].piece));
  group.closest(".beam").querySelector(".readout").textContent =
    `${group.getAttribute("aria-label")} — ${words.join(" ")}`;
}

function walk(event, { nodes, best }) {
  const number = Number(event.target.closest("g.node")?.dataset.node ?? NaN);
  if (Number.isNaN(number)) return;
  const children = (parent) =>
    [...nodes.keys()]
      .filter((one) => nodes[one].parent === parent)
      .sort((one, other) => best.includes(other) - best.includes(one) || nodes[other].score - nodes[one].score);
  const siblings = children(nodes[number].parent);
  const place = siblings.indexOf(number);
  const to = {
    ArrowLeft: () => nodes[number].parent,
    ArrowRight: () => children(number)[0],
    ArrowUp: () => siblings[place - 1],
    ArrowDown: () => siblings[place + 1],
  }[event.key];
  if (!to) return;
  event.preventDefault();
  const next = to();
  if (next === null || next === undefined) return;
  const group = event.currentTarget.querySelector(`[data-node="${next}"]`);
  for (const other of event.currentTarget.querySelectorAll('g[tabindex="0"]')) other.setAttribute("tabindex", -1);
  group.setAttribute("tabindex", 0);
  group.focus();
  group.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function picked(event) {
  event.target.closest("g.node")?.focus();
}

/** Keep the column of the current step in sight. */
export function after(panel, { state, changed }) {
  const box = panel.querySelector(".scroll");
  if (!box || !changed) return;
  const x = LEFT + WIDTH * state.step;
  if (x < box.scrollLeft + 20 || x > box.scrollLeft + box.clientWidth - WIDTH) box.scrollLeft = x - box.clientWidth / 2;
}
