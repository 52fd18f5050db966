// The interface in several languages. Texts come from i18n/*.json; all have the same keys.

let strings = {};
let language = "en";

export function setStrings(all) {
  strings = all;
}

export const languages = () => Object.keys(strings);
export const currentLanguage = () => language;

export function setLanguage(wanted) {
  if (wanted in strings) language = wanted;
}

const look = (key) => strings[language]?.[key];

/** A text of the interface, its `{places}` filled. */
export function t(key, places = {}) {
  const text = look(key) ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in places ? String(places[name]) : whole));
}

/** A text that Python wrote in English, whatever its numbers, in the language of the page; null if there is none. */
export function translated(group, english) {
  const numbers = english.match(/\d+/g) ?? [];
  const pattern = english.replace(/\d+/g, "#");
  return look(`${group}.${pattern}`)?.replace(/#/g, () => numbers.shift() ?? "#") ?? null;
}

/** A number with a fixed count of decimals, with a true minus sign. */
export function fixed(value, decimals = 3) {
  const text = value.toFixed(decimals);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

export const signed = (value, decimals = 3) =>
  (value > 0 && Number(value.toFixed(decimals)) ? "+" : "") + fixed(value, decimals);
export const grouped = (value) => value.toLocaleString(language);
export const percent = (prob) => {
  const korean = language === "ko";
  if (prob > 0 && prob < 0.005) return korean ? "1%\u00a0미만" : "<\u00a01\u00a0%";
  return `${Math.round(100 * prob)}${korean ? "" : "\u00a0"}%`;
};

/** What a language is called in the language of the interface. */
export function languageName(code) {
  try {
    return new Intl.DisplayNames([language], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}
