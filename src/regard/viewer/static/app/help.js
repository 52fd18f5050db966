// What the keys do, in a dialog; and the switch for those that are letters.

import { h } from "#app/dom";
import { t } from "#app/i18n";

const KEYS = [
  [["[", "]"], "help.step"],
  [["Space"], "help.play"],
  [["Home", "End"], "help.ends"],
  [["h", "H"], "help.head"],
  [["l", "L"], "help.layer"],
  [["w"], "help.by"],
  [["m"], "help.measure"],
  [[",", "."], "help.micro"],
  [["e"], "help.edit"],
  [["c"], "help.compare"],
  [["Ctrl+Z"], "help.undo"],
  [["←", "↑", "→", "↓"], "help.walk"],
  [["Enter", "Esc"], "help.pin"],
  [["d"], "help.theme"],
  [["g"], "help.language"],
  [["?"], "help.help"],
];

export function draw({ letters, onLetters, onClose }) {
  return h(
    "dialog",
    { class: "help", "aria-labelledby": "help-title" },
    h("h2", { id: "help-title" }, t("help.title")),
    h(
      "dl",
      { class: "keys" },
      KEYS.map(([keys, text]) =>
        h(
          "div",
          null,
          h(
            "dt",
            null,
            keys.map((key) => h("kbd", null, key)),
          ),
          h("dd", null, t(text)),
        ),
      ),
    ),
    h(
      "label",
      { class: "tick" },
      h("input", {
        type: "checkbox",
        class: "letters",
        checked: letters,
        onchange: (event) => onLetters(event.target.checked),
      }),
      t("help.letters"),
    ),
    h("p", { class: "hint" }, t("help.colours")),
    h("p", { class: "hint" }, t("standing")),
    h("button", { type: "button", class: "close", onclick: onClose }, t("close")),
  );
}
