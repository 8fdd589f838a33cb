// Axes of charts in SVG, and charts as PNG.

import { svg } from "./dom.js";
import { formatTick, linearTicks, logTicks } from "./numbers.js";

/** @typedef {{low: number, high: number, log: boolean}} Domain */
/** @typedef {{left: number, right: number, top: number, bottom: number}} Frame */

const INLINED = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity",
  "font-family", "font-size", "font-weight", "text-anchor",
];

/** A scale from numbers to pixels. */
export class Scale {
  /**
   * @param {Domain} domain
   * @param {number} from
   * @param {number} to
   */
  constructor(domain, from, to) {
    this.domain = domain;
    this.from = from;
    this.to = to;
  }

  /**
   * Return the pixel of a number.
   * @param {number} value
   * @returns {number}
   */
  at(value) {
    const { low, high, log } = this.domain;
    const [start, end, place] = log ? [Math.log(low), Math.log(high), Math.log(value)] : [low, high, value];
    return this.from + (end > start ? (place - start) / (end - start) : 0.5) * (this.to - this.from);
  }

  /**
   * @param {number} count
   */
  ticks(count) {
    const { low, high, log } = this.domain;
    return log ? logTicks(low, high, count) : linearTicks(low, high, count);
  }
}

/**
 * Return the domain of numbers, with a margin in parts of it. One that is empty or a point is widened.
 * @param {Iterable<number>} values
 * @param {boolean} log
 * @param {number} margin
 * @returns {Domain}
 */
export function domainOf(values, log, margin) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value) || (log && value <= 0)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return { low: log ? 0.1 : 0, high: 1, log };
  if (log) {
    const factor = low === high ? 2 : (high / low) ** margin;
    return { low: low / factor, high: high * factor, log };
  }
  if (low === high) return { low: low - 0.5, high: high + 0.5, log };
  const wide = (high - low) * margin;
  return { low: low - wide, high: high + wide, log };
}

/**
 * Return the lines and numbers of two axes.
 * @param {Frame} frame
 * @param {Scale} x
 * @param {Scale} y
 * @param {{x: string, y: string, ticksX?: [number, string][], areCounts?: boolean}} names
 * @returns {SVGElement}
 */
export function drawAxes(frame, x, y, names) {
  const group = svg("g", { class: "axes" });
  for (const tick of y.ticks(Math.max(2, (frame.bottom - frame.top) / 48))) {
    if (names.areCounts && !Number.isInteger(tick)) continue;
    const at = y.at(tick);
    group.append(
      svg("line", { class: "grid-line", x1: frame.left, x2: frame.right, y1: at, y2: at }),
      svg("text", { class: "tick", x: frame.left - 6, y: at + 3.5, "text-anchor": "end" }, formatTick(tick)),
    );
  }
  const ticks = names.ticksX ?? x.ticks(Math.max(2, (frame.right - frame.left) / 80)).map((tick) => [tick, formatTick(tick)]);
  for (const [tick, name] of ticks) {
    group.append(svg("text", { class: "tick", x: x.at(Number(tick)), y: frame.bottom + 15, "text-anchor": "middle" }, name));
  }
  group.append(
    svg("line", { class: "axis", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom }),
    svg("text", { class: "axis-name", x: frame.right, y: frame.bottom + 30, "text-anchor": "end" }, names.x),
    svg("text", { class: "axis-name", x: 2, y: 11 }, names.y),
  );
  return group;
}

/**
 * Return an SVG as a PNG. The style sheet does not reach into pictures, so its values are written into a copy.
 * @param {SVGSVGElement} picture
 * @returns {Promise<Blob | null>}
 */
export async function svgPicture(picture) {
  const copy = /** @type {SVGSVGElement} */ (picture.cloneNode(true));
  const [from, to] = [picture.querySelectorAll("*"), copy.querySelectorAll("*")];
  from.forEach((element, place) => {
    const style = getComputedStyle(element);
    for (const name of INLINED) to[place].setAttribute(name, style.getPropertyValue(name));
  });
  const box = picture.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(box.width));
  copy.setAttribute("height", String(box.height));
  const address = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * box.width, 2 * box.height];
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.fillStyle = getComputedStyle(picture).getPropertyValue("--surface");
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}
