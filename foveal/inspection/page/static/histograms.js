// Histograms with the same bins, side by side; one alone has numbers at both of its axes.

import { drawAxes, Scale, svgPicture } from "./chart.js";
import { html, svg } from "./dom.js";
import { formatNumber, shorten } from "./numbers.js";
import { SERIES_COUNT } from "./palette.js";
import { PanelElement } from "./panel-element.js";

/** @typedef {{name: string, cut: number | null, note: string, counts: number[]}} Histogram */
/** @typedef {{x: number, y: number, wide: number, top: number, bottom: number}} Place */

const ALONE = { left: 52, right: 10, top: 22, bottom: 220, below: 36 };
const ONE = { width: 148, height: 118, top: 18, bottom: 18, gap: 14 };
const OVER_OTHERS = 1.3; // a bin that is cut off ends this far above the others

export class HistogramsElement extends PanelElement {
  content() {
    this.edges = /** @type {import("./bundle.js").Bundle} */ (this.bundle).numbers(this.panel.edges);
    /** @type {number} */
    this.number = 0;
    /** @type {number} */
    this.bin = 0;
    this.host = html("div", {
      class: "chart histograms",
      tabindex: 0,
      role: "application",
      "aria-roledescription": "histograms",
      "aria-label": `${this.panel.sentence}. Left and right move from bin to bin, up and down to another histogram.`,
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event),
      onfocus: () => this.moved(),
    });
    new ResizeObserver(() => this.draw()).observe(this.host);
    return [this.host];
  }

  hasPicture() {
    return true;
  }

  async picture() {
    const picture = this.host?.querySelector("svg");
    return picture ? svgPicture(picture) : null;
  }

  /** @returns {Histogram[]} */
  histograms() {
    return this.panel.histograms;
  }

  table() {
    const { edges } = this;
    const columns = ["from", "to", ...this.histograms().map((one) => one.name)];
    const count = Math.max(0, (edges?.length ?? 1) - 1);
    return {
      columns,
      count,
      rows: async (/** @type {number} */ from, /** @type {number} */ to) =>
        Array.from({ length: to - from }, (_, row) => [
          formatNumber(edges?.[from + row] ?? NaN),
          formatNumber(edges?.[from + row + 1] ?? NaN),
          ...this.histograms().map((one) => formatNumber(one.counts[from + row])),
        ]),
    };
  }

  draw() {
    const { host, edges } = this;
    if (!host || !edges || !host.clientWidth) return;
    const width = host.clientWidth;
    const histograms = this.histograms();
    const isAlone = histograms.length === 1;
    this.places = isAlone ? [{ ...ALONE, x: ALONE.left, y: 0, wide: width - ALONE.left - ALONE.right }] : smallPlaces(histograms.length, width);
    const height = isAlone ? ALONE.bottom + ALONE.below : Math.max(0, ...this.places.map((one) => one.y + ONE.height + ONE.gap));
    const picture = svg("svg", { width, height, "aria-hidden": "true", focusable: "false" });
    this.mark = svg("rect", { class: "bar-cursor", visibility: "hidden" });
    for (const [number, place] of this.places.entries()) {
      const around = isAlone ? this.axes(histograms[number], place) : this.names(histograms[number], place);
      picture.append(svg("g", { transform: `translate(${place.x} ${place.y})` }, ...around, ...this.bins(histograms[number], number, place)));
    }
    picture.append(this.mark);
    host.replaceChildren(picture);
  }

  /**
   * @param {Place} place
   * @returns {Scale}
   */
  scale({ wide }) {
    const edges = /** @type {import("./bundle.js").Numbers} */ (this.edges);
    return new Scale({ low: edges[0], high: edges[edges.length - 1], log: this.panel.log_x }, 0, wide);
  }

  /**
   * Return the bars of a histogram.
   * @param {Histogram} one
   * @param {number} number
   * @param {Place} place
   */
  bins(one, number, place) {
    const edges = /** @type {import("./bundle.js").Numbers} */ (this.edges);
    const high = top(one) || 1;
    const scale = this.scale(place);
    return one.counts.map((count, bin) => {
      const tall = Math.min(1, count / high) * (place.bottom - place.top);
      const left = scale.at(edges[bin]);
      const box = { x: left, y: place.bottom - tall, width: Math.max(0.5, scale.at(edges[bin + 1]) - left - 0.4), height: tall };
      const look = `bar series-${this.panel.color % SERIES_COUNT}${bin === one.cut ? " cut" : ""}`;
      return svg("rect", { class: look, ...box, onpointerenter: () => this.say(this.describe(number, bin), false) });
    });
  }

  /**
   * Return the axes of a histogram that is alone, with their numbers and names.
   * @param {Histogram} one
   * @param {Place} place
   */
  axes(one, place) {
    const { top: upper, bottom, wide } = place;
    const counts = new Scale({ low: 0, high: top(one) || 1, log: false }, bottom, upper);
    const names = { x: this.panel.x_label || one.name, y: this.panel.y_label || "count", areCounts: true };
    return [
      drawAxes({ left: 0, right: wide, top: upper, bottom }, this.scale(place), counts, names),
      svg("text", { class: "tick", x: wide, y: 11, "text-anchor": "end" }, one.note),
    ];
  }

  /**
   * Return the name of one of several histograms, its note, and the limits of its bins.
   * @param {Histogram} one
   * @param {Place} place
   */
  names(one, place) {
    const { wide, bottom } = place;
    const { low, high } = this.scale(place).domain;
    return [
      svg("text", { class: "axis-name", x: 0, y: 11 }, shorten(one.name, Math.floor(wide / 6.5))),
      svg("line", { class: "axis", x1: 0, x2: wide, y1: bottom, y2: bottom }),
      svg("text", { class: "tick", x: 0, y: bottom + 14 }, formatNumber(low)),
      svg("text", { class: "tick", x: wide, y: bottom + 14, "text-anchor": "end" }, formatNumber(high)),
      svg("text", { class: "tick", x: wide, y: 11, "text-anchor": "end" }, one.note),
    ];
  }

  /**
   * @param {number} number
   * @param {number} bin
   */
  describe(number, bin) {
    const [one, edges] = [this.histograms()[number], this.edges];
    const range = `${formatNumber(edges?.[bin] ?? NaN)} to ${formatNumber(edges?.[bin + 1] ?? NaN)}`;
    const cut = bin === one.cut ? ", taller than drawn" : "";
    return `${one.name}, ${range}: ${formatNumber(one.counts[bin])}${cut}${one.note ? `; ${one.note.replaceAll("\n", ", ")}` : ""}`;
  }

  moved() {
    const { number = 0, bin = 0, edges } = this;
    const one = this.histograms()[number];
    if (!one || !edges || !one.counts.length) return;
    const place = this.places?.[number];
    if (place && this.mark) {
      const [left, right] = [edges[bin], edges[bin + 1]].map((edge) => this.scale(place).at(edge));
      const box = { x: place.x + left, y: place.y + place.top - 2, width: Math.max(3, right - left) };
      for (const [name, value] of Object.entries({ ...box, height: place.bottom - place.top + 2, visibility: "visible" })) {
        this.mark.setAttribute(name, String(value));
      }
    }
    this.say(this.describe(number, bin));
  }

  /**
   * @param {KeyboardEvent} event
   */
  onKey(event) {
    const bins = (this.edges?.length ?? 1) - 1;
    let { number = 0, bin = 0 } = this;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "ArrowLeft") bin -= 1;
    else if (event.key === "ArrowRight") bin += 1;
    else if (event.key === "ArrowUp") number -= 1;
    else if (event.key === "ArrowDown") number += 1;
    else if (event.key === "PageUp") bin -= 10;
    else if (event.key === "PageDown") bin += 10;
    else if (event.key === "Home") bin = 0;
    else if (event.key === "End") bin = bins - 1;
    else if (event.key === "Escape") {
      this.host?.blur();
      return;
    } else return;
    event.preventDefault();
    this.number = Math.max(0, Math.min(this.histograms().length - 1, number));
    this.bin = Math.max(0, Math.min(bins - 1, bin));
    this.moved();
  }
}

/**
 * Return the places of several histograms in rows.
 * @param {number} count
 * @param {number} width
 * @returns {Place[]}
 */
function smallPlaces(count, width) {
  const columns = Math.max(1, Math.floor((width + ONE.gap) / (ONE.width + ONE.gap)));
  const used = Math.max(1, Math.min(columns, count));
  const wide = Math.min(260, (width - ONE.gap * (used - 1)) / used);
  return Array.from({ length: count }, (_, number) => ({
    x: (number % columns) * (wide + ONE.gap),
    y: Math.floor(number / columns) * (ONE.height + ONE.gap),
    wide,
    top: ONE.top,
    bottom: ONE.height - ONE.bottom,
  }));
}

/**
 * Return the end of the axis of counts.
 * @param {Histogram} one
 */
function top(one) {
  if (one.cut === null) return Math.max(0, ...one.counts);
  return OVER_OTHERS * Math.max(0, ...one.counts.filter((_, bin) => bin !== one.cut)) || one.counts[one.cut];
}
