// Moving the gaze: a row of attention that is set by hand, by pointer or by keys.

import { rows } from "#app/arrays";
import { headOf } from "#app/data";
import { mean } from "#app/views";

const FAR = 6; // pixels: less is a click
const SMALL = 0.01;
const LARGE = 0.05;

/** Which attention a hand moves: the head in focus, else the layer that is read. */
export function focus(trace, state) {
  const { reading } = trace.model;
  if (state.view === "cross" && state.layer !== null) return { layer: state.layer, head: state.head };
  const several = trace.attentions.cross.logs.shape[1] > 1;
  return { layer: reading.layer, head: several ? null : reading.head };
}

/** The weights of a step in the attention that a hand moves. */
export function looks(trace, state, step) {
  const { cross } = trace.attentions;
  const { layer, head } = focus(trace, state);
  return head === null
    ? Array.from(mean(cross, cross.weights, layer, null)[step])
    : Array.from(rows(headOf(cross.weights, layer, head))[step]);
}

/** A row with this share on the pieces of a word, the rest scaled so that all sum to 1. */
export function moved(row, pieces, share) {
  const inside = new Set(pieces);
  const sum = (wanted) => row.reduce((total, weight, at) => total + (inside.has(at) === wanted ? weight : 0), 0);
  const [own, other] = [sum(true), sum(false)];
  const spread = (weight, at) => {
    if (inside.has(at)) return own > 1e-6 ? (weight * share) / own : share / pieces.length;
    return other > 1e-6 ? (weight * (1 - share)) / other : (1 - share) / Math.max(1, row.length - pieces.length);
  };
  return row.map((weight, at) => Math.round(1e6 * spread(weight, at)) / 1e6);
}

/** The share that a key gives a word; null if the key means something else. */
export function keyed({ key, shiftKey }, share) {
  const by = shiftKey ? SMALL : LARGE;
  const wanted = { ArrowUp: share + by, ArrowDown: share - by, 0: 0, 1: 1, Enter: 1 }[key];
  return wanted === undefined ? null : Math.min(1, Math.max(0, wanted));
}

/**
 * Follow the pointer from a translated word until it is let go. `draw` is given where it is, `drop` the source word
 * under it. A short way is a click, and nothing happens.
 */
export function drag(event, stage, { draw, drop }) {
  const [x, y] = [event.clientX, event.clientY];
  let far = false;
  const under = (moved_) => {
    const found = document.elementFromPoint(moved_.clientX, moved_.clientY)?.closest?.(".source [data-place]");
    return found && stage.contains(found) ? found : null;
  };
  const move = (moved_) => {
    far ||= Math.hypot(moved_.clientX - x, moved_.clientY - y) > FAR;
    if (!far) return;
    moved_.preventDefault();
    stage.classList.add("dragging");
    for (const chip of stage.querySelectorAll(".aimed")) chip.classList.remove("aimed");
    under(moved_)?.classList.add("aimed");
    draw(moved_.clientX, moved_.clientY);
  };
  const end = (last) => {
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", end);
    removeEventListener("pointercancel", end);
    stage.classList.remove("dragging");
    for (const chip of stage.querySelectorAll(".aimed")) chip.classList.remove("aimed");
    const chip = last.type === "pointerup" && far ? under(last) : null;
    drop(chip ? Number(chip.dataset.place) : null, far);
  };
  addEventListener("pointermove", move, { passive: false });
  addEventListener("pointerup", end);
  addEventListener("pointercancel", end);
}
