// One trace, all its panels. The state decides what they show; a panel is drawn again if what it depends on changed.

import { h, morph, paintAll } from "#app/dom";
import { createStore, memory } from "#app/store";
import { currentLanguage, t } from "#app/i18n";
import { load, Unsound } from "#app/data";
import { measures, OF_EFFECTS, unitOf, units } from "#app/views";
import { turned } from "#app/selector";
import { player, stops } from "#app/transport";
import { DRAWERS } from "#app/drawers";
import { isDark } from "#app/colours";
import { picture } from "#app/picture";
import * as header from "#app/header";
import * as transport from "#app/transport";
import * as timeline from "#app/timeline";
import * as selector from "#app/selector";
import * as heatmap from "#app/heatmap";
import * as candidates from "#app/candidates";
import * as mechanics from "#app/mechanics";
import * as unrolled from "#app/unrolled";
import * as matrices from "#app/matrices";
import * as beam from "#app/beam";
import * as drawers from "#app/drawers";

const PANELS = [header, timeline, transport, drawers, heatmap, selector, candidates, mechanics, unrolled, matrices, beam];
const DRAWER_OF = Object.fromEntries(Object.entries(DRAWERS).map(([drawer, panel]) => [panel, drawer]));
const START = {
  step: 0,
  by: "words",
  view: "alignment",
  layer: null,
  head: null,
  measure: "weights",
  numbers: false,
  scaled: false,
  pin: null,
  playing: false,
  speed: 1,
  edit: null,
  micro: null,
  row: null,
  open: Object.keys(DRAWERS),
  marks: null,
  said: null,
};

/**
 * Show a trace in an element: `{ trace, cards }` as Python writes them. Returns what the page needs of it; `store` is
 * null if the trace is not sound and a message stands in its place. `live` is there if an engine can be asked.
 */
export async function mount(host, { trace: document_, cards, effects }, { id, state: wanted = {}, live = null }) {
  let trace;
  try {
    trace = await load(document_);
  } catch (error) {
    if (!(error instanceof Unsound)) throw error;
    const redraw = () => host.replaceChildren(refusal(error));
    redraw();
    return { store: null, redraw, host };
  }
  trace.coming = Boolean(effects); // they are still being computed
  const store = createStore(START);
  const act = actions(trace, store, live);
  act.set(wanted);
  const panels = host.appendChild(h("div", { class: "panels" }));
  const order = live ? [...PANELS.filter((panel) => panel !== header), header] : PANELS;
  const elements = new Map(order.map((panel) => [panel, panels.appendChild(h("section", { class: panel.name }))]));
  const drawn = new Map();
  const redraw = () => {
    const { state } = store;
    for (const panel of PANELS) {
      const drawer = DRAWER_OF[panel.name];
      if (drawer && !state.open.includes(drawer)) {
        elements.get(panel).hidden = true;
        drawn.delete(panel);
        continue;
      }
      if (drawer && !drawn.has(panel)) elements.get(panel).hidden = false;
      const key = JSON.stringify([currentLanguage(), isDark(), Boolean(trace.effects), ...panel.inputs(state)]);
      const changed = drawn.get(panel) !== key;
      const context = { trace, cards, state, act, live, id: `${id}-${panel.name}`, changed };
      if (changed) {
        elements.set(panel, morph(elements.get(panel), panel.draw(context)));
        paintAll(elements.get(panel));
        drawn.set(panel, key);
      }
      panel.after?.(elements.get(panel), context);
    }
  };
  store.listen(redraw);
  player(store, act);
  redraw();
  // Ribbons hang on the places of the words.
  new ResizeObserver(() => timeline.after(elements.get(timeline), { trace, state: store.state })).observe(host);
  return { store, act, redraw, host, trace, cards };
}

/** What can be done to the state, with its limits. */
function actions(trace, store, live) {
  const last = trace.target.pieces.length - 1;
  const act = {
    set(changes) {
      const next = limited(trace, { ...store.state, ...changes }, last);
      store.set(Object.fromEntries(Object.keys(START).map((key) => [key, next[key]])));
    },
    go: (step) => act.set({ step, playing: false }),
    /** Where the transport stops: at every word of a live page, at every piece of a saved one. */
    stops: () => stops(trace, store.state, live),
    step(by) {
      const all = act.stops();
      const at = all.findLastIndex((one) => one <= store.state.step);
      act.go(all[Math.min(all.length - 1, Math.max(0, at + by))]);
    },
    play() {
      const { playing, step } = store.state;
      const all = act.stops();
      act.set(playing ? { playing: false } : { playing: all.length > 1, step: step >= all.at(-1) ? 0 : step });
    },
    toggle(drawer) {
      const { open } = store.state;
      const next = open.includes(drawer) ? open.filter((one) => one !== drawer) : [...open, drawer];
      if (live) memory.set("open", next.join());
      act.set({ open: next, edit: null });
    },
    edit: (place) => act.set({ edit: place }),
    editCurrent: () => live && act.edit(unitOf(trace.target, store.state.by, store.state.step)),
    /** Go through the cards of the step one by one. */
    micro(by, count) {
      const { micro } = store.state;
      const next = (micro ?? (by > 0 ? -1 : count)) + by;
      act.set({ micro: next < 0 || next >= count ? null : next });
    },
    pin(r, c) {
      const { pin } = store.state;
      act.set({ pin: pin && pin[0] === r && pin[1] === c ? null : [r, c] });
    },
    /** Another kind of attention: its mean over all, or the layer and head that were looked at. */
    look(view) {
      const { reading } = trace.model;
      const first =
        view === "cross" && reading ? { layer: reading.layer, head: reading.head ?? 0 } : { layer: 0, head: 0 };
      act.set({ view, pin: null, ...(view === "alignment" ? { layer: null, head: null } : first) });
    },
    /** What is shown, as a file of a form. */
    picture: (form) => picture(form, trace, store.state),
    turn: (axis, by) => act.set(turned(trace, store.state, axis, by)),
    nextMeasure() {
      const all = measures(trace, store.state);
      if (all.length) act.set({ measure: all[(all.indexOf(store.state.measure) + 1) % all.length], pin: null });
    },
  };
  return act;
}

/** The nearest state that this trace can show: a link may come from another one. */
function limited(trace, state, last) {
  const whole = (value, size) => (Number.isInteger(value) && value >= 0 && value < size ? value : null);
  const next = { ...state, step: Math.min(last, Math.max(0, Number.isInteger(state.step) ? state.step : 0)) };
  if (next.view !== "alignment" && !Object.hasOwn(trace.attentions, next.view)) next.view = "alignment";
  const [layers, heads] = trace.attentions[next.view]?.logs.shape ?? [0, 0];
  const { pieces } = trace.target;
  next.row = whole(next.row, trace.source.pieces.length);
  next.edit = whole(next.edit, next.by === "pieces" ? pieces.length : units(trace.target).length);
  next.open = Array.isArray(next.open) ? next.open.filter((one) => one in DRAWERS) : START.open;
  next.layer = whole(next.layer, layers);
  next.head = next.layer === null ? null : whole(next.head, heads);
  const options = measures(trace, next);
  if (!options.includes(next.measure) && !(trace.coming && OF_EFFECTS.has(next.measure))) next.measure = options[0] ?? "weights";
  return next;
}

function refusal(error) {
  return h(
    "div",
    { class: "panel refusal", role: "alert" },
    h("h2", null, t("refusal")),
    h("p", null, t(`unsound.${error.key}`)),
    error.detail ? h("p", null, h("code", null, error.detail)) : null,
    h("p", { class: "hint" }, t("refusal.hint")),
  );
}
