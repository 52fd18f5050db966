// Keys of the page. They act on the trace that has the focus or was used last.

const FIELDS = "input:not([type=range]):not([type=checkbox]), textarea, select, [contenteditable]";
const PRESSABLE = "button, summary, input[type=checkbox], select";

/** Letters and signs; they can be switched off (WCAG 2.1.4), because a voice may say them by chance. */
const LETTERS = {
  "[": (act) => act.step(-1),
  "]": (act) => act.step(1),
  h: (act) => act.turn("head", 1),
  H: (act) => act.turn("head", -1),
  l: (act) => act.turn("layer", 1),
  L: (act) => act.turn("layer", -1),
  w: (act, state) => act.set({ by: state.by === "words" ? "pieces" : "words", pin: null }),
  m: (act) => act.nextMeasure(),
  e: (act) => act.editCurrent(),
  ",": (act, _, cards) => act.micro(-1, cards),
  ".": (act, _, cards) => act.micro(1, cards),
};

export function listen(app) {
  document.addEventListener("keydown", (event) => {
    const { target } = event;
    if (isUndo(event) && !target.closest?.(FIELDS) && app.undo()) return event.preventDefault();
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || target.closest?.("dialog")) return;
    if (target.closest?.(FIELDS)) return;
    if (pressed(event, app)) event.preventDefault();
  });
}

const isUndo = (event) => (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key === "z";

function pressed(event, app) {
  const { key, target } = event;
  const viewer = app.active();
  if (app.store.state.letters) {
    const page = { d: app.nextTheme, g: app.nextLanguage, c: app.compare, "?": app.help }[key];
    if (page) return (page(), true);
    if (viewer && key in LETTERS) return (LETTERS[key](viewer.act, viewer.store.state, viewer.cards.length), true);
  }
  if (!viewer) return false;
  const { act, trace } = viewer;
  if (key === " " && !target.closest?.(PRESSABLE)) return (act.play(), true);
  if (target.closest?.("input")) return false;
  if (key === "Home") return (act.go(0), true);
  if (key === "End") return (act.go(trace.target.pieces.length - 1), true);
  if (key === "Escape") return (act.set({ pin: null }), true);
  return false;
}
