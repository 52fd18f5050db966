// Which words of one text another does not have in the same order.

/** The places of `words` that are in no longest common subsequence with `others`. */
export function differing(words, others) {
  const longest = Array.from({ length: words.length + 1 }, () => new Uint16Array(others.length + 1));
  for (let a = words.length - 1; a >= 0; a--)
    for (let b = others.length - 1; b >= 0; b--)
      longest[a][b] =
        words[a] === others[b] ? longest[a + 1][b + 1] + 1 : Math.max(longest[a + 1][b], longest[a][b + 1]);
  const found = [];
  for (let [a, b] = [0, 0]; a < words.length;) {
    if (b < others.length && words[a] === others[b]) [a, b] = [a + 1, b + 1];
    else if (b < others.length && longest[a][b + 1] >= longest[a + 1][b]) b++;
    else found.push(a++);
  }
  return found;
}
