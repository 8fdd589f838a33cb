// Colors of numbers. The light scales are those of the pictures that Python draws (Blues, RdBu reversed).

/** @typedef {[number, number, number]} Color */

/** @type {Record<string, string[]>} */
const STOPS = {
  "light-sequential": [
    "#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b",
  ],
  "light-diverging": [
    "#053061", "#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7",
    "#fddbc7", "#f4a582", "#d6604d", "#b2182b", "#67001f",
  ],
  "dark-sequential": ["#1b222c", "#1d3a5c", "#22588f", "#3b82bd", "#6fb0dc", "#aed6ee", "#eef8ff"],
  "dark-diverging": [
    "#b5dcff", "#6fb0ea", "#3b7fc0", "#26507c", "#1f3044", "#20252d",
    "#452c29", "#80423a", "#c2604d", "#ef9078", "#ffd0c0",
  ],
};
const SHADES = 256;
/** @type {Map<string, Uint8ClampedArray>} */
const tables = new Map();
const darkQuery = matchMedia("(prefers-color-scheme: dark)");

/** Colors of series in order, and of roles, are set in the style sheet: `--series-0`, `--role-correct` ... */
export const SERIES_COUNT = 6;

/**
 * Return whether the page is dark.
 * @returns {boolean}
 */
export function isDark() {
  return darkQuery.matches;
}

/**
 * Call a function when the page becomes dark or light.
 * @param {() => void} listener
 */
export function onSchemeChange(listener) {
  darkQuery.addEventListener("change", listener);
}

/**
 * Return 256 colors, three bytes each.
 * @param {boolean} diverging
 * @returns {Uint8ClampedArray}
 */
export function colorTable(diverging) {
  const name = `${isDark() ? "dark" : "light"}-${diverging ? "diverging" : "sequential"}`;
  const known = tables.get(name);
  if (known) return known;
  const stops = STOPS[name].map(parseColor);
  const table = new Uint8ClampedArray(3 * SHADES);
  for (let shade = 0; shade < SHADES; shade += 1) {
    const place = (shade / (SHADES - 1)) * (stops.length - 1);
    const left = Math.min(stops.length - 2, Math.floor(place));
    for (let channel = 0; channel < 3; channel += 1) {
      const [from, to] = [stops[left][channel], stops[left + 1][channel]];
      table[3 * shade + channel] = Math.round(from + (place - left) * (to - from));
    }
  }
  tables.set(name, table);
  return table;
}

/**
 * Return the number of a value's color, from 0 to 255; -1 for NaN.
 * @param {number} value
 * @param {number} low
 * @param {number} high
 * @returns {number}
 */
export function shadeOf(value, low, high) {
  if (Number.isNaN(value)) return -1;
  const share = high > low ? (value - low) / (high - low) : 0.5;
  return Math.min(SHADES - 1, Math.max(0, Math.floor(share * SHADES)));
}

/**
 * Return the color of a value as CSS, and that of letters that can be read on it.
 * @param {number} value
 * @param {{low: number, high: number, diverging: boolean}} scale
 * @returns {{fill: string, letters: string}}
 */
export function colorOf(value, scale) {
  const shade = shadeOf(value, scale.low, scale.high);
  if (shade < 0) return { fill: "transparent", letters: "inherit" };
  const table = colorTable(scale.diverging);
  /** @type {Color} */
  const color = [table[3 * shade], table[3 * shade + 1], table[3 * shade + 2]];
  const isLight = luminance(color) > 0.179;
  return { fill: `rgb(${color.join(" ")})`, letters: isLight ? "#000" : "#fff" };
}

/**
 * Return the color of a kind as CSS, light enough for black letters. Hues lie as far apart as they can.
 * @param {number} kind
 * @param {number} count
 * @returns {{fill: string, letters: string}}
 */
export function kindColor(kind, count) {
  const hue = Math.round((360 * kind) / Math.max(1, count) + 215) % 360;
  return { fill: `hsl(${hue} 62% ${kind % 2 ? 84 : 74}%)`, letters: "#000" };
}

/**
 * Return the relative luminance of a color (WCAG 2).
 * @param {Color} color
 * @returns {number}
 */
function luminance(color) {
  const [red, green, blue] = color.map((byte) => {
    const part = byte / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/**
 * @param {string} text
 * @returns {Color}
 */
function parseColor(text) {
  const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16));
  return [red, green, blue];
}
