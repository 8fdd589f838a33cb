// Numbers as text, and positions of ticks.

/**
 * Return a number as it is announced and written everywhere: three digits, or all of an integer.
 * @param {number} value
 * @returns {string}
 */
export function formatNumber(value) {
  if (Number.isNaN(value)) return "no value";
  if (!Number.isFinite(value)) return value > 0 ? "infinite" : "minus infinite";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e12) return value.toLocaleString("en-US");
  if (size >= 1e6 || size < 1e-3) return value.toExponential(2);
  if (size >= 100) return value.toLocaleString("en-US", { maximumFractionDigits: 1 });
  return String(Number(value.toPrecision(3)));
}

/**
 * Return a round number beside an axis.
 * @param {number} value
 * @returns {string}
 */
export function formatTick(value) {
  const size = Math.abs(value);
  return value !== 0 && (size >= 1e6 || size < 1e-3) ? Number(value.toPrecision(6)).toExponential() : formatNumber(value);
}

/**
 * Return round numbers from `low` to `high`, about `count` of them.
 * @param {number} low
 * @param {number} high
 * @param {number} count
 * @returns {number[]}
 */
export function linearTicks(low, high, count) {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough * 0.999) ?? rough;
  const ticks = [];
  for (let number = Math.ceil(low / step - 1e-9); number * step <= high + step * 1e-9; number += 1) {
    ticks.push(Number((number * step).toPrecision(12)));
  }
  return ticks;
}

/**
 * Return powers of ten from `low` to `high`, about `count` of them; linear ticks where there are too few.
 * @param {number} low
 * @param {number} high
 * @param {number} count
 * @returns {number[]}
 */
export function logTicks(low, high, count) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  if (last - first < 1) return linearTicks(low, high, count);
  const every = Math.max(1, Math.ceil((last - first + 1) / count));
  const ticks = [];
  for (let power = first; power <= last; power += every) ticks.push(10 ** power);
  return ticks;
}

/**
 * Return a position's name: its label, or its number.
 * @param {import("./bundle.js").Axis} axis
 * @param {number} position
 * @returns {string}
 */
export function positionName(axis, position) {
  return axis.labels.length ? axis.labels[position] : String(position);
}

/**
 * Return what is said of a position: `query 'cat'`, `unit 3`.
 * @param {import("./bundle.js").Axis} axis
 * @param {number} position
 * @returns {string}
 */
export function positionSentence(axis, position) {
  if (!axis.labels.length) return `${axis.name} ${position}`;
  const label = axis.labels[position];
  return label.startsWith(axis.name) ? visible(label) : `${axis.name} '${visible(label)}'`;
}

/**
 * Return a text in one line: spaces and line breaks that would not be seen or heard have a sign.
 * @param {string} text
 * @returns {string}
 */
export function visible(text) {
  if (text === " ") return "␣";
  return text.replaceAll("\r", "␍").replaceAll("\n", "⏎").replaceAll("\t", "⇥").replaceAll("\0", "␀");
}

/**
 * Return at most `count` letters of a text.
 * @param {string} text
 * @param {number} count
 * @returns {string}
 */
export function shorten(text, count) {
  const letters = [...visible(text)];
  return letters.length <= count ? letters.join("") : `${letters.slice(0, count - 1).join("")}…`;
}
