// The state as the part of the address after `#`: a link to the file shows the same. Counted from 1, as on the page.

// Browsers hinder pages that change their address hundreds of times in ten seconds.
const [MOST, SPAN, PAUSE] = [40, 10_000, 300]; // changes in a time, and how long one more waits; milliseconds
let [written, waiting] = [[], null]; // when it was written of late

const BY = new Set(["words", "pieces"]);

/** Whether this page has an address of its own: one inside a notebook's frame has not. */
const hasAddress = () => ["file:", "http:", "https:"].includes(location.protocol);

/** What the address asks for; what the page was made to show first, where it says nothing. */
export function read() {
  const address = hasAddress() ? location.hash.slice(1) : "";
  return new URLSearchParams(address || JSON.parse(document.getElementById("asked")?.textContent || '""'));
}

const ROUTES = ["evaluate", "about"];

/** Which page an address asks for: `#/evaluate`, `#/about`; null for the main screen. */
export const routeOf = (params) => ROUTES.find((route) => params.has(`/${route}`)) ?? null;

/** The state of viewer `number` that an address asks for. Limits are the viewer's business. */
export function stateOf(params, number) {
  const get = (key) => params.get(number ? `${key}.${number + 1}` : key);
  const state = {};
  const count = (text) => (text && /^\d+$/.test(text) ? Number(text) - 1 : null);
  if (count(get("step")) !== null) state.step = count(get("step"));
  if (BY.has(get("by"))) state.by = get("by");
  if (get("view")) state.view = get("view");
  const [layer, head] = (get("head") ?? "").split(".").map(count);
  if (layer !== null && layer !== undefined) Object.assign(state, { layer, head: head ?? null });
  if (get("measure")) state.measure = get("measure");
  if (get("numbers")) state.numbers = true;
  if (get("scaled")) state.scaled = true;
  const [r, c] = (get("pin") ?? "").split(".").map(count);
  if (r !== null && c !== null && c !== undefined) state.pin = [r, c];
  return state;
}

/** Write the state at once, so that a reload loses nothing; during many changes, a few times a second. */
export function write(app, states, more) {
  if (!hasAddress()) return;
  clearTimeout(waiting);
  written = written.filter((when) => performance.now() - when < SPAN);
  if (written.length < MOST) put(app, states, more);
  else waiting = setTimeout(() => put(app, states, more), PAUSE);
}

function put(app, states, more = {}) {
  written.push(performance.now());
  const params = new URLSearchParams();
  states.forEach((state, number) => {
    if (!state) return;
    const add = (key, value) => params.set(number ? `${key}.${number + 1}` : key, value);
    add("step", state.step + 1);
    add("view", state.view);
    if (state.layer !== null)
      add("head", [state.layer + 1, ...(state.head === null ? [] : [state.head + 1])].join("."));
    add("measure", state.measure);
    add("by", state.by);
    if (state.numbers) add("numbers", 1);
    if (state.scaled) add("scaled", 1);
    if (state.pin) add("pin", state.pin.map((place) => place + 1).join("."));
  });
  for (const [key, value] of Object.entries(more)) params.set(key, value);
  params.set("lang", app.language);
  if (app.theme !== "auto") params.set("theme", app.theme);
  try {
    history.replaceState(null, "", `#${app.route ? `/${app.route}&` : ""}${params}`);
  } catch {
    // An address that may not change changes nothing else.
  }
}
