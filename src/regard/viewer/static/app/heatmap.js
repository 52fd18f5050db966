// The heat map: a table whose cells can be reached one by one, each saying its number.

import { h, piece } from "#app/dom";
import { t, fixed, signed as withSign, percent } from "#app/i18n";
import { shaded, css, inkOn, gradient } from "#app/colours";
import { OF_EFFECTS, aboutSource, grid, measures, probs, reversals } from "#app/views";

export const name = "heatmap";
export const inputs = (state) => [state.by, state.view, state.layer, state.head, state.measure, state.numbers, state.scaled];

export function draw({ trace, state, act, id }) {
  const options = measures(trace, state);
  const awaited = trace.coming && aboutSource(state) ? (trace.attentions.cross ? [...OF_EFFECTS] : ["erasure"]) : [];
  const current = options.includes(state.measure) ? grid(trace, state) : null;
  const drawn = current?.columns.length ? table(trace, state, current, act, id) : null;
  return h(
    "section",
    { class: "panel heatmap", "aria-labelledby": `${id}-heatmap` },
    h(
      "div",
      { class: "row-of" },
      h("h2", { id: `${id}-heatmap` }, t("heatmap")),
      h(
        "div",
        { class: "choice measures", role: "group", "aria-label": t("measure") },
        [...options, ...awaited].map((measure) =>
          h(
            "button",
            {
              type: "button",
              class: measure,
              "aria-pressed": String(measure === state.measure),
              title: t(`measure.${measure}.title`),
              onclick: () => act.set({ measure, pin: null }),
            },
            t(`measure.${measure}`),
          ),
        ),
      ),
      ["numbers", "scaled"].map((one) =>
        h(
          "label",
          { class: "tick", title: one === "scaled" ? t("scaled.title") : null },
          h("input", {
            type: "checkbox",
            class: one,
            checked: state[one],
            onchange: (event) => act.set({ [one]: event.target.checked }),
          }),
          t(one),
        ),
      ),
    ),
    drawn ? [explain(trace, state, current), drawn] : h("p", { class: "hint empty" }, t(trace.coming ? "heatmap.coming" : "heatmap.none")),
    h("p", { class: "standing" }, t("standing")),
  );
}

function explain(trace, state, current) {
  const { reading } = trace.model;
  const own = state.measure === "weights" && current.kind !== "cross"; // a text looks at itself
  const hints = [t(own ? "measure.weights.own" : `measure.${state.measure}.hint`)];
  if (state.measure === "weights" && trace.attentions[current.kind]?.normalised === false) hints.push(t("measure.window"));
  if (state.measure === "weights" && state.view === "alignment" && reading?.shifted)
    hints.push(t(reading.posterior ? "measure.posterior" : "measure.shifted"));
  if (current.by === "pieces" && state.by === "words") hints.push(t("by_pieces_only"));
  return h("p", { class: "hint" }, hints.join(" "));
}

function table(trace, state, current, act, id) {
  const { matrix, rows, columns, texts, signed, kind } = current;
  const bound = boundOf(current);
  const bounds = boundsOf(current, state.scaled);
  const languages = {
    row: kind === "encoder" ? trace.model.source_language : trace.model.target_language,
    column: kind === "decoder" ? trace.model.target_language : trace.model.source_language,
  };
  const blocks = reversals(current);
  const said = kind === "cross" ? probs(trace.target, current.by) : null;
  const body = matrix.map((line, r) => {
    const top = strongest(line, state.measure);
    return h(
      "tr",
      { "data-row": r },
      h(
        "th",
        { scope: "row", role: "rowheader", title: rows[r], lang: languages.row },
        h("span", { class: "label" }, h("bdi", null, piece(rows[r])), said ? h("small", null, percent(said[r])) : null),
      ),
      line.map((value, c) =>
        cell({
          value,
          r,
          c,
          top: c === top,
          row: rows[r],
          column: columns[c],
          text: texts?.[r][c],
          bound,
          strong: bounds[r],
          signed,
          state,
          block: blocks.find((one) => one.row === r && one.column === c),
        }),
      ),
    );
  });
  const moved = (event) => tell(event.currentTarget.closest(".heatmap"), event.target.closest("td[data-c]"));
  return h(
    "div",
    { class: "drawn" },
    h(
      "div",
      { class: "scroll box" },
      h(
        "table",
        {
          role: "grid",
          "aria-label": t("heatmap.label"),
          "aria-rowcount": rows.length + 1,
          "aria-colcount": columns.length + 1,
          class: `grid ${state.measure} ${texts ? "texts" : state.numbers ? "numbered" : ""} ${width(columns.length)}`,
          onkeydown: (event) => walk(event, act),
          onclick: (event) => clicked(event, current, act, trace),
          onfocusin: moved,
          onpointerover: moved,
          onpointerleave: (event) => tell(event.currentTarget.closest(".heatmap"), null),
        },
        h(
          "thead",
          null,
          h(
            "tr",
            { role: "row" },
            h(
              "td",
              { class: "corner" },
              h("span", { class: "across" }, t(`axis.${kind}.across`)),
              h("span", { class: "down" }, t(`axis.${kind}.down`)),
            ),
            columns.map((column, c) =>
              h(
                "th",
                { scope: "col", role: "columnheader", title: column, lang: languages.column, "data-c": c },
                h("span", { class: "label" }, h("bdi", null, piece(column))),
              ),
            ),
          ),
        ),
        h("tbody", null, body),
      ),
    ),
    h("output", { class: "readout", id: `${id}-readout` }, t("heatmap.readout")),
    legend(bound, current, state, blocks.length > 0),
  );
}

/** The value that has the strongest colour. Where a few are far beyond all others, that of nine rows of ten. */
export function boundOf({ matrix, signed, clips }) {
  const finite = matrix.flat().filter(Number.isFinite);
  if (!signed) return Math.max(1, ...finite);
  const tops = matrix.map((line) => line.reduce((most, value) => Math.max(most, Math.abs(value) || 0), 1e-9));
  const most = Math.max(1e-9, ...tops);
  const usual = tops.sort((one, other) => one - other)[Math.floor(0.9 * (tops.length - 1))];
  return clips && usual < most / 2 ? usual : most;
}

/** The value of each row that has the strongest colour: its own highest if rows are scaled, else that of all. */
export function boundsOf(current, scaled) {
  const bound = boundOf(current);
  const highest = (line) => line.reduce((most, value) => Math.max(most, Math.abs(value) || 0), 0) || bound;
  return current.matrix.map((line) => (scaled ? highest(line) : bound));
}

/** Few columns may have more room; never less than a finger needs. */
const width = (count) => (count > 24 ? "dense" : count > 17 ? "" : count > 10 ? "roomy" : "airy");

export function strongest(line, measure) {
  const size = measure === "erasure" ? Math.abs : (value) => value;
  let best = -1;
  line.forEach((value, place) => {
    if (!Number.isNaN(value) && (best < 0 || size(value) > size(line[best]))) best = place;
  });
  return best;
}

function cell({ value, r, c, top, row, column, text, bound, strong, signed, state, block }) {
  const masked = Number.isNaN(value);
  const colour = shaded(value, strong, signed);
  const number = signed ? withSign(value) : fixed(value);
  const label = masked
    ? t("cell.masked", { row, column })
    : t(text ? "cell.only" : "cell", {
        row,
        column,
        value: number,
        text,
        top: top ? t(state.measure === "erasure" ? "cell.strongest" : "cell.top") : "",
      });
  const shown =
    text ??
    (state.numbers && !masked
      ? signed
        ? withSign(value, bound < 9.995 ? 2 : 1)
        : fixed(value, 2).replace(/^0/, "")
      : "");
  return h(
    "td",
    {
      role: "gridcell",
      tabindex: -1,
      "data-c": c,
      "data-r": r,
      "aria-label": label,
      class: masked ? "masked" : top ? "top" : null,
      style: masked ? {} : { "background-color": css(colour), color: inkOn(colour) },
    },
    text ? piece(shown) : shown,
    block ? h("i", { class: "reversed", "aria-hidden": "true", style: { "--height": block.height, "--width": block.width } }) : null,
  );
}

function legend(bound, { signed, matrix, kind }, { measure, scaled }, hasBlocks) {
  const clipped = !scaled && matrix.some((line) => line.some((value) => Math.abs(value) > bound * (1 + 1e-9)));
  const masked = matrix.some((line) => line.some(Number.isNaN));
  const ends = signed ? [fixed(-bound, 2), withSign(bound, 2)] : ["0", fixed(bound, bound === 1 ? 0 : 2)];
  if (scaled) [ends[0], ends[1]] = [signed ? "−" : "0", t("legend.scaled")];
  if (clipped) [ends[0], ends[1]] = [`≤ ${ends[0]}`, `≥ ${ends[1]}`];
  return h(
    "div",
    { class: "legend" },
    h(
      "span",
      { class: "ramp-of" },
      ends[0],
      h("i", { class: "ramp", style: { background: gradient(signed) } }),
      ends[1],
    ),
    h("span", null, h("i", { class: "sample top" }), t(measure === "erasure" ? "legend.strongest" : "legend.top")),
    kind === "encoder" ? null : h("span", null, h("i", { class: "sample now" }), t("legend.now")),
    clipped ? h("span", null, t("legend.clipped")) : null,
    hasBlocks ? h("span", null, h("i", { class: "sample reversed-of" }), t("legend.reversed")) : null,
    masked ? h("span", null, h("i", { class: "sample masked" }), t("legend.masked")) : null,
  );
}

/** Mark the row of the current step and the pinned cell, and let the Tab key come to one cell only. */
export function after(panel, { trace, state, act }) {
  const grid_ = panel.querySelector("table.grid");
  if (!grid_ || !measures(trace, state).includes(state.measure)) return;
  const now = grid(trace, state).rowOf(state.step);
  for (const line of grid_.tBodies[0].rows) {
    const is = Number(line.dataset.row) === now;
    line.classList.toggle("now", is);
    if (is) line.setAttribute("aria-current", "step");
    else line.removeAttribute("aria-current");
  }
  for (const one of grid_.querySelectorAll("td.pinned")) {
    one.classList.remove("pinned");
    one.removeAttribute("aria-selected");
  }
  const pinned = state.pin && at(grid_, ...state.pin);
  if (pinned) {
    pinned.classList.add("pinned");
    pinned.setAttribute("aria-selected", "true");
  }
  const focused = grid_.contains(document.activeElement) ? document.activeElement : null;
  rove(grid_, focused?.matches("td[data-c]") ? focused : (pinned ?? at(grid_, Math.max(now, 0), 0)));
  tell(panel, focused);
  follow(grid_, now);
}

const at = (table_, r, c) => table_.tBodies[0].rows[r]?.cells[c + 1] ?? null;

function rove(table_, wanted) {
  for (const one of table_.querySelectorAll('td[tabindex="0"]')) one.tabIndex = -1;
  if (wanted) wanted.tabIndex = 0;
}

function follow(table_, r) {
  const box = table_.closest(".scroll");
  const line = table_.tBodies[0].rows[r];
  if (!line || box.scrollHeight <= box.clientHeight) return;
  const head = table_.tHead.offsetHeight;
  if (line.offsetTop - head < box.scrollTop || line.offsetTop + line.offsetHeight > box.scrollTop + box.clientHeight)
    box.scrollTop = line.offsetTop - head - (box.clientHeight - head) / 2;
}

/** Say the number of a cell below the map, and lift the names of its row and column. */
function tell(panel, wanted) {
  const cell_ = wanted?.matches?.("td[data-c]") ? wanted : panel.querySelector("td.pinned");
  const readout = panel.querySelector(".readout");
  const text = cell_?.getAttribute("aria-label") ?? t("heatmap.readout");
  if (readout && readout.textContent !== text) readout.textContent = text;
  for (const one of panel.querySelectorAll("th.linked")) one.classList.remove("linked");
  if (!cell_) return;
  cell_.parentElement.cells[0].classList.add("linked");
  panel.querySelector(`thead th[data-c="${cell_.dataset.c}"]`)?.classList.add("linked");
}

function walk(event, act) {
  const cell_ = event.target.closest("td[data-c]");
  if (!cell_ || event.ctrlKey || event.metaKey || event.altKey) return;
  const table_ = event.currentTarget;
  const [r, c] = [Number(cell_.dataset.r), Number(cell_.dataset.c)];
  const lastColumn = cell_.parentElement.cells.length - 2;
  const to = {
    ArrowUp: [r - 1, c],
    ArrowDown: [r + 1, c],
    ArrowLeft: [r, c - 1],
    ArrowRight: [r, c + 1],
    Home: [r, 0],
    End: [r, lastColumn],
  }[event.key];
  if (to) {
    const next = to[1] >= 0 && to[1] <= lastColumn ? at(table_, ...to) : null;
    if (next) {
      rove(table_, next);
      next.focus();
    }
  } else if (event.key === "Enter") act.pin(r, c);
  else if (event.key === "Escape") act.set({ pin: null });
  else return;
  event.preventDefault();
}

function clicked(event, current, act, trace) {
  const cell_ = event.target.closest("td[data-c]");
  if (cell_) {
    rove(event.currentTarget, cell_);
    act.pin(Number(cell_.dataset.r), Number(cell_.dataset.c));
  }
  const row = event.target.closest("tbody th")?.parentElement.dataset.row;
  const step = row === undefined ? -1 : trace.target.pieces.findIndex((_, one) => current.rowOf(one) === Number(row));
  if (step >= 0) act.go(step);
}
