// One store: what is shown is a function of what it holds.

/** A store with the current `state`; `set` changes some of it and tells everyone who asked. */
export function createStore(state) {
  const listeners = new Set();
  return {
    get state() {
      return state;
    },
    set(changes) {
      const next = { ...state, ...changes };
      if (Object.keys(changes).every((key) => Object.is(state[key], next[key]))) return;
      state = next;
      listeners.forEach((listener) => listener(state));
    },
    listen(listener) {
      listeners.add(listener);
    },
  };
}

/** What was chosen on an earlier visit. In a frame without an origin there is no storage, and asking for it throws. */
export const memory = {
  get(key) {
    try {
      return localStorage.getItem(`regard.${key}`);
    } catch {
      return null;
    }
  },
  set(key, value) {
    try {
      localStorage.setItem(`regard.${key}`, value);
    } catch {
      // Nothing is remembered; all else works.
    }
  },
};
