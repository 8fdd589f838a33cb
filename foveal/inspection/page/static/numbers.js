// Numbers as text, and positions of ticks.

/** @type {[number, string][]} */
const TICK_UNITS = [[1e12, "T"], [1e9, "G"], [1e6, "M"]];
const NUMBER = /^(?:[+\-\u2212]?[\d,]*\.?\d+(?:e[+-]?\d+)?(?: ?(?:%|[a-zA-Z/]{1,4}))?|no value|(?:minus )?infinite|-?(?:nan|inf))$/;

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
 * Return a round number beside an axis: from a million on with a letter, such as `13.5 M`.
 * @param {number} value
 * @returns {string}
 */
export function formatTick(value) {
  const size = Math.abs(value);
  const unit = TICK_UNITS.find(([least]) => size >= least && size < 1e3 * least);
  if (unit) return `${Number((value / unit[0]).toPrecision(6))} ${unit[1]}`;
  return value !== 0 && (size >= 1e6 || size < 1e-3) ? Number(value.toPrecision(6)).toExponential() : formatNumber(value);
}

/**
 * Return whether a text is a number, with or without a short unit, or says that there is none.
 * @param {string} text
 * @returns {boolean}
 */
export function isNumber(text) {
  return NUMBER.test(text);
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
 * Return 1, 2 and 5 of each decade from `low` to `high`; if these are more than `count`, powers of ten alone,
 * and if those are too few, linear ticks.
 * @param {number} low
 * @param {number} high
 * @param {number} count
 * @returns {number[]}
 */
export function logTicks(low, high, count) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const fine = [];
  for (let power = first - 1; power <= last; power += 1) {
    fine.push(...[1, 2, 5].map((factor) => Number(`${factor}e${power}`)).filter((tick) => tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)));
  }
  if (fine.length > 2 && fine.length <= count) return fine;
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
 * Return a text in lines of at most `count` letters, broken at spaces. A longer word stays whole.
 * @param {string} text
 * @param {number} count
 * @returns {string[]}
 */
export function wrapWords(text, count) {
  const [first, ...rest] = text.split(" ");
  const lines = [first];
  for (const word of rest) {
    const longer = `${lines[lines.length - 1]} ${word}`;
    if (longer.length <= count) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
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
