// What is shown, as a file or a link.

import { h } from "#app/dom";
import { t } from "#app/i18n";

/** The list of forms; `file(form)` gives the contents, `say` is told what happened. */
export function saving({ file, say, forms }) {
  return h(
    "label",
    { class: "save" },
    h("span", null, t("save")),
    h(
      "select",
      { onchange: (event) => save(event.currentTarget, file, say), "aria-label": t("save") },
      h("option", { value: "" }, "…"),
      forms.map((form) => h("option", { value: form }, form.toUpperCase())),
      h("option", { value: "link" }, t("save.link")),
    ),
  );
}

async function save(list, file, say) {
  const form = list.value;
  list.value = "";
  if (!form) return;
  try {
    if (form === "link") {
      await navigator.clipboard.writeText(location.href);
      say(t("save.copied"));
      return;
    }
    const blob = await file(form);
    const link = h("a", { href: URL.createObjectURL(blob), download: `regard.${form}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  } catch (error) {
    say(error);
  }
}
