// Curves and points over common axes.

import { domainOf, drawAxes, Scale, svgPicture } from "./chart.js";
import { html, svg } from "./dom.js";
import { formatNumber } from "./numbers.js";
import { SERIES_COUNT } from "./palette.js";
import { PanelElement } from "./panel-element.js";

/** @typedef {import("./bundle.js").Numbers} Numbers */
/** @typedef {{name: string, style: string, color: number, labels: string[], x: Numbers, y: Numbers,
 *   lower: Numbers | null, upper: Numbers | null, hidden: boolean}} Curve */

const MARGINS = { left: 52, right: 14, top: 22, bottom: 36 };
const POINTS = ["points", "cloud", "ring"];
const POINTS_PER_PIXEL = 2;
const PAGE_OF_POINTS = 10;
const RADII = /** @type {Record<string, number>} */ ({ dots: 3, points: 3.2, cloud: 2.4, ring: 6 });
const LONE_RADIUS = 3; // of the point of a curve that has no other
const MARK_ROOM = 8; // pixels from the limits of the axes to the middle of a mark

export class LinesElement extends PanelElement {
  content() {
    const bundle = /** @type {import("./bundle.js").Bundle} */ (this.bundle);
    /** @type {Curve[]} */
    this.curves = this.panel.series.map((/** @type {any} */ one) => ({
      ...one,
      x: bundle.numbers(one.x),
      y: bundle.numbers(one.y),
      lower: one.lower ? bundle.numbers(one.lower) : null,
      upper: one.upper ? bundle.numbers(one.upper) : null,
      hidden: false,
    }));
    /** @type {number} */
    this.curve = Math.max(0, (this.curves ?? []).findIndex((one) => one.style !== "faint" && one.x.length > 0));
    /** @type {number} */
    this.point = 0;
    this.host = html("div", {
      class: "chart",
      tabindex: 0,
      role: "application",
      "aria-roledescription": "chart",
      "aria-label": `${this.panel.sentence}. Left and right move from point to point, up and down to another curve.`,
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event),
      onpointermove: (/** @type {PointerEvent} */ event) => this.onPointer(event),
      onfocus: () => this.moved(),
    });
    new ResizeObserver(() => this.draw()).observe(this.host);
    return [this.host, this.legend()];
  }

  hasPicture() {
    return true;
  }

  async picture() {
    const picture = this.host?.querySelector("svg");
    return picture ? svgPicture(picture) : null;
  }

  table() {
    const { x_label: xName, y_label: yName } = this.panel;
    const lines = (this.curves ?? []).flatMap((one) =>
      Array.from(one.x, (x, place) => [one.name, formatNumber(x), formatNumber(one.y[place]), one.labels[place] ?? ""]),
    );
    const named = lines.some((line) => line[3]);
    const cells = named ? lines : lines.map((line) => line.slice(0, 3));
    return {
      columns: ["series", xName, yName || this.panel.title || "value", ...(named ? ["label"] : [])],
      count: cells.length,
      rows: async (/** @type {number} */ from, /** @type {number} */ to) => cells.slice(from, to),
    };
  }

  /** Return the names of the curves, each a button that hides its curve. */
  legend() {
    const { curves = [] } = this;
    if (!this.panel.legend || curves.length < 2) return html("div", { class: "legend" });
    const buttons = curves.map((one) => {
      const swatch = svg("svg", { class: "swatch", width: 22, height: 14, "aria-hidden": "true" });
      const isPoint = POINTS.includes(one.style) || one.x.length === 1;
      swatch.append(...this.drawCurve({ ...one, labels: [] }, isPoint ? [11] : [4, 18], isPoint ? [7] : [7, 7], null));
      const button = html("button", { type: "button", "aria-pressed": "true" }, swatch, html("bdi", {}, one.name));
      button.addEventListener("click", () => {
        one.hidden = !one.hidden;
        button.setAttribute("aria-pressed", String(!one.hidden));
        this.draw();
      });
      return button;
    });
    return html("div", { class: "legend curves", role: "group", "aria-label": "Curves shown" }, ...buttons);
  }

  draw() {
    const { curves, host, panel } = this;
    if (!curves || !host || !host.clientWidth) return;
    const width = host.clientWidth;
    const ratio = Math.min(0.75, Math.max(0.18, panel.size[1] / panel.size[0]));
    const height = Math.max(130, Math.min(460, Math.round(width * ratio)));
    const frame = { left: MARGINS.left, right: width - MARGINS.right, top: MARGINS.top, bottom: height - MARGINS.bottom };
    const shown = curves.filter((one) => !one.hidden);
    const domainX = domainOf(drawnX(shown, panel.log_y), panel.log_x, margin(frame.right - frame.left, panel.equal ? 0.06 : 0.01));
    const values = joined(shown.flatMap((one) => [one.y, one.lower ?? [], one.upper ?? []]));
    let domainY = domainOf(values, panel.log_y, margin(frame.bottom - frame.top, 0.06));
    if (panel.limits) domainY = { low: panel.limits[0], high: panel.limits[1], log: panel.log_y };
    if (panel.equal) equalize(domainX, domainY, frame);
    this.x = new Scale(domainX, frame.left, frame.right);
    this.y = new Scale(domainY, frame.bottom, frame.top);
    const clip = `clip-${Math.random().toString(36).slice(2)}`;
    const inside = svg("g", { "clip-path": `url(#${clip})` });
    for (const one of shown) {
      const [x, y] = [this.x, this.y];
      const place = (/** @type {Numbers} */ values, /** @type {Scale} */ scale) => Array.from(values, (value) => scale.at(value));
      const band = one.lower && one.upper ? [place(one.lower, y), place(one.upper, y)] : null;
      inside.append(...this.drawCurve(one, place(one.x, x), place(one.y, y), band));
    }
    const frameBox = {
      x: frame.left - MARK_ROOM,
      y: frame.top - MARK_ROOM,
      width: frame.right - frame.left + 2 * MARK_ROOM,
      height: frame.bottom - frame.top + 2 * MARK_ROOM,
    };
    this.mark = svg("circle", { class: "point-cursor", r: 5, visibility: "hidden" });
    host.replaceChildren(
      svg(
        "svg",
        { width, height, "aria-hidden": "true", focusable: "false" },
        svg("clipPath", { id: clip }, svg("rect", frameBox)),
        drawAxes(frame, this.x, this.y, { x: panel.x_label, y: panel.y_label }),
        inside,
        this.mark,
      ),
    );
    if (!curves.some((one) => one.x.length)) host.append(html("p", { class: "note" }, "no values"));
  }

  /**
   * @param {Curve} one
   * @param {number[]} x
   * @param {number[]} y
   * @param {number[][] | null} band
   * @returns {SVGElement[]}
   */
  drawCurve(one, x, y, band) {
    const look = `series-${one.color % SERIES_COUNT} ${one.style}`;
    const parts = [];
    if (band) {
      const up = x.map((place, point) => `${place.toFixed(1)},${band[1][point].toFixed(1)}`);
      const back = x.map((place, point) => `${place.toFixed(1)},${band[0][point].toFixed(1)}`).reverse();
      parts.push(svg("polygon", { class: `band ${look}`, points: [...up, ...back].join(" ") }));
    }
    if (!POINTS.includes(one.style)) parts.push(svg("path", { class: `curve ${look}`, d: pathOf(x, y) }));
    const radius = RADII[one.style] ?? (x.length === 1 ? LONE_RADIUS : 0);
    if (radius) {
      x.forEach((place, point) => {
        if (Number.isFinite(y[point])) parts.push(svg("circle", { class: `dot ${look}`, cx: place, cy: y[point], r: radius }));
      });
    }
    one.labels.forEach((text, point) => {
      if (Number.isFinite(x[point]) && Number.isFinite(y[point])) parts.push(svg("text", { class: `label ${look}`, x: x[point] + 5, y: y[point] - 5 }, text));
    });
    return parts;
  }

  /** Show and announce the point at the cursor. */
  moved() {
    const one = this.curves?.[this.curve ?? 0];
    if (!one) return;
    const point = this.point ?? 0;
    if (!one.x.length) {
      this.say(`${one.name}: no values`);
      return;
    }
    this.showMark(one, point);
    this.say(this.describe(one, point));
  }

  /**
   * @param {Curve} one
   * @param {number} point
   */
  describe(one, point) {
    const { x_label: xName, y_label: yName } = this.panel;
    const label = one.labels[point] ? ` (${one.labels[point]})` : "";
    const band = one.lower && one.upper ? `, ${formatNumber(one.lower[point])} to ${formatNumber(one.upper[point])}` : "";
    const value = `${yName || "value"} ${formatNumber(one.y[point])}${band}${label}`;
    return `${one.name}, ${xName} ${formatNumber(one.x[point])}: ${value}`;
  }

  /**
   * @param {Curve} one
   * @param {number} point
   */
  showMark(one, point) {
    if (!this.mark || !this.x || !this.y) return;
    const isDrawn = Number.isFinite(this.x.at(one.x[point])) && Number.isFinite(this.y.at(one.y[point]));
    this.mark.setAttribute("visibility", isDrawn ? "visible" : "hidden");
    if (!isDrawn) return;
    this.mark.setAttribute("cx", String(this.x.at(one.x[point])));
    this.mark.setAttribute("cy", String(this.y.at(one.y[point])));
  }

  /**
   * @param {KeyboardEvent} event
   */
  onKey(event) {
    const { curves = [] } = this;
    if (!curves.length || event.ctrlKey || event.altKey || event.metaKey) return;
    let [curve, point] = [this.curve ?? 0, this.point ?? 0];
    if (event.key === "ArrowLeft") point -= 1;
    else if (event.key === "ArrowRight") point += 1;
    else if (event.key === "PageUp") point -= PAGE_OF_POINTS;
    else if (event.key === "PageDown") point += PAGE_OF_POINTS;
    else if (event.key === "Home") point = 0;
    else if (event.key === "End") point = curves[curve].x.length - 1;
    else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      const at = curves[curve].x[point];
      curve = (curve + (event.key === "ArrowUp" ? curves.length - 1 : 1)) % curves.length;
      point = Math.max(0, nearest(curves[curve].x, at));
    } else if (event.key === "Escape") {
      this.host?.blur();
      return;
    } else return;
    event.preventDefault();
    this.curve = curve;
    this.point = Math.max(0, Math.min(curves[curve].x.length - 1, point));
    this.moved();
  }

  /**
   * @param {PointerEvent} event
   */
  onPointer(event) {
    const { curves, x, y, host } = this;
    if (!curves || !x || !y || !host) return;
    const box = host.getBoundingClientRect();
    const [left, top] = [event.clientX - box.left, event.clientY - box.top];
    let best = { distance: Infinity, curve: 0, point: 0 };
    curves.forEach((one, curve) => {
      if (one.hidden) return;
      one.x.forEach((value, point) => {
        const distance = (x.at(value) - left) ** 2 + ((y.at(one.y[point]) - top) ** 2) / 4;
        if (distance < best.distance) best = { distance, curve, point };
      });
    });
    if (best.distance === Infinity) return;
    [this.curve, this.point] = [best.curve, best.point];
    this.showMark(curves[best.curve], best.point);
    this.say(this.describe(curves[best.curve], best.point), false);
  }
}

/**
 * Return the margin of a domain that leaves room for a mark at each end of an axis of some pixels.
 * @param {number} length
 * @param {number} least
 */
function margin(length, least) {
  return Math.max(least, MARK_ROOM / Math.max(1, length - 2 * MARK_ROOM));
}

/**
 * Yield the x of the points that are drawn: those with a value, which is above 0 on a logarithmic axis.
 * @param {Curve[]} curves
 * @param {boolean} isLog
 */
function* drawnX(curves, isLog) {
  for (const one of curves) {
    const values = [one.y, one.lower, one.upper].filter((each) => each !== null);
    for (const point of one.x.keys()) {
      if (values.some((each) => Number.isFinite(each[point]) && (!isLog || each[point] > 0))) yield one.x[point];
    }
  }
}

/**
 * Yield the numbers of several arrays.
 * @param {Iterable<number>[]} arrays
 */
function* joined(arrays) {
  for (const array of arrays) yield* array;
}

/**
 * Return the path of a curve: of many points of a pixel the first, smallest, largest and last.
 * @param {number[]} x
 * @param {number[]} y
 * @returns {string}
 */
function pathOf(x, y) {
  let path = "";
  let isOpen = false;
  for (const point of x.length > 2000 ? thinned(x, y) : x.keys()) {
    if (!Number.isFinite(x[point]) || !Number.isFinite(y[point])) {
      isOpen = false;
      continue;
    }
    path += `${isOpen ? "L" : "M"}${x[point].toFixed(1)} ${y[point].toFixed(1)}`;
    isOpen = true;
  }
  return path;
}

/**
 * Yield the points that are seen: for each half pixel the lowest and the highest.
 * @param {number[]} x
 * @param {number[]} y
 */
function* thinned(x, y) {
  let start = 0;
  for (let end = 1; end <= x.length; end += 1) {
    const together = end < x.length && Math.floor(x[end] * POINTS_PER_PIXEL) === Math.floor(x[start] * POINTS_PER_PIXEL);
    if (together) continue;
    let [low, high] = [start, start];
    for (let point = start; point < end; point += 1) {
      if (y[point] < y[low] || Number.isNaN(y[low])) low = point;
      if (y[point] > y[high] || Number.isNaN(y[high])) high = point;
    }
    yield* new Set([Math.min(low, high), Math.max(low, high)]);
    start = end;
  }
}

/**
 * Widen one of two domains so that a unit is as long on both axes.
 * @param {import("./chart.js").Domain} x
 * @param {import("./chart.js").Domain} y
 * @param {import("./chart.js").Frame} frame
 */
function equalize(x, y, frame) {
  const unit = Math.max((x.high - x.low) / (frame.right - frame.left), (y.high - y.low) / (frame.bottom - frame.top));
  for (const [domain, length] of /** @type {[import("./chart.js").Domain, number][]} */ ([
    [x, frame.right - frame.left],
    [y, frame.bottom - frame.top],
  ])) {
    const [middle, half] = [(domain.low + domain.high) / 2, (unit * length) / 2];
    [domain.low, domain.high] = [middle - half, middle + half];
  }
}

/**
 * @param {Numbers} values
 * @param {number} wanted
 */
function nearest(values, wanted) {
  let best = 0;
  values.forEach((value, place) => {
    if (Math.abs(value - wanted) < Math.abs(values[best] - wanted)) best = place;
  });
  return best;
}
