// Lessons: a text, a stage and a task that the page checks. What they say stands in lessons.json.

import { h } from "#app/dom";
import { currentLanguage, t } from "#app/i18n";
import { memory } from "#app/store";
import { lowered } from "#app/strips";
import { widget } from "#app/widgets";

export let LESSONS = [];
let examples = {};
const solved = new Set();
let answers = {}; // of the widget of the current lesson

export function setLessons(all) {
  LESSONS = all.lessons ?? [];
  examples = all.examples ?? {};
  for (const id of memory.get("solved")?.split(",") ?? []) solved.add(id);
}

export const exampleOf = (language) => examples[language] ?? "";

export function begin() {
  answers = {};
}

const own = (texts) => texts?.[currentLanguage()] ?? texts?.en ?? "";

const CHECKS = {
  said: (facts, wanted) => facts.said?.toLowerCase().includes(wanted.toLowerCase()),
  not_said: (facts, wanted) => facts.said !== undefined && !facts.said.toLowerCase().includes(wanted.toLowerCase()),
  words: (facts, wanted) => facts.words >= wanted,
  changed: (facts, wanted) => facts.changes?.includes(wanted),
  unchanged: (facts) => facts.changes?.length === 0,
  open: (facts, wanted) => facts.open?.includes(wanted),
  compare: (facts, wanted) => facts.compare === wanted,
  looks_at: (facts, wanted) => facts.looks_at === wanted,
  at: (facts, wanted) => facts.at === (wanted === "last" ? facts.last : wanted),
  micro: (facts, wanted) => facts.micro === wanted,
  view: (facts, wanted) => facts.view === wanted,
  measure: (facts, wanted) => facts.measure === wanted,
  model: (facts, wanted) => facts.model === wanted,
  pinned: (facts, wanted) => facts.pinned === wanted,
  answer: (_, wanted) => Object.entries(wanted).every(([key, value]) => answers[key] === value),
};

/** Whether a task is done: all its conditions hold. A condition that is not known never does. */
export const done = (task, facts) =>
  facts.said !== undefined &&
  Object.entries(task.check).every(([key, wanted]) => Boolean(CHECKS[key]?.(facts, wanted)));

export function draw({ number, facts, has, go, close }) {
  if (number === null || !LESSONS[number]) return list(go);
  const lesson = LESSONS[number];
  if (!solved.has(lesson.id) && done(lesson.task, facts)) {
    solved.add(lesson.id);
    memory.set("solved", [...solved].join());
  }
  const isDone = solved.has(lesson.id);
  const step = (by, key) =>
    h("button", { type: "button", class: key, disabled: !LESSONS[number + by], onclick: () => go(number + by) }, t(key));
  return h(
    "section",
    { class: "panel lesson", "aria-labelledby": "lesson-title" },
    h(
      "div",
      { class: "row-of" },
      h("span", { class: "count" }, t("lesson_n", { n: number + 1, count: LESSONS.length })),
      h("h2", { id: "lesson-title" }, own(lesson.title)),
      h("span", { class: "buttons" }, step(-1, "lesson.back"), step(1, "lesson.next"),
        h("button", { type: "button", class: "leave", onclick: close }, t("lesson.close"))),
    ),
    own(lesson.text).map((line) => h("p", null, lowered(line))),
    has(lesson.stage.model) ? null : h("p", { class: "hint missing-model" }, t("lesson.missing", { model: lesson.stage.model })),
    lesson.widget ? widget(lesson.widget, answer, `${lesson.id}.${currentLanguage()}`) : null,
    h(
      "p",
      { class: `task${isDone ? " done" : ""}`, role: "status" },
      h("b", null, isDone ? `✓ ${t("task.done")}` : t("task")),
      " ",
      own(lesson.task.text),
    ),
  );
}

function answer(key, value) {
  if (answers[key] === value) return;
  answers[key] = value;
  document.dispatchEvent(new CustomEvent("answered"));
}

function list(go) {
  if (!LESSONS.length) return h("section", { hidden: true });
  return h(
    "details",
    { class: "panel lessons" },
    h("summary", null, t("lessons", { count: LESSONS.length })),
    h(
      "ol",
      null,
      LESSONS.map((lesson, number) =>
        h(
          "li",
          null,
          h(
            "button",
            { type: "button", onclick: () => go(number) },
            `${number + 1} `,
            own(lesson.title),
            solved.has(lesson.id) ? h("span", { title: t("task.done") }, " ✓") : null,
          ),
        ),
      ),
    ),
  );
}
