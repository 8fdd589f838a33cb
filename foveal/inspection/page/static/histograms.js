// Histograms with the same bins, side by side.

import { svgPicture } from "./chart.js";
import { html, svg } from "./dom.js";
import { formatNumber, shorten } from "./numbers.js";
import { SERIES_COUNT } from "./palette.js";
import { PanelElement } from "./panel-element.js";

/** @typedef {{name: string, cut: number | null, note: string, counts: number[]}} Histogram */

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
    const columns = Math.max(1, Math.floor((width + ONE.gap) / (ONE.width + ONE.gap)));
    const histograms = this.histograms();
    const rows = Math.ceil(histograms.length / columns);
    const wide = Math.min(260, (width - ONE.gap * (Math.min(columns, histograms.length) - 1)) / Math.max(1, Math.min(columns, histograms.length)));
    const picture = svg("svg", { width, height: rows * (ONE.height + ONE.gap), "aria-hidden": "true", focusable: "false" });
    this.mark = svg("rect", { class: "bar-cursor", visibility: "hidden" });
    histograms.forEach((one, number) => {
      const [x, y] = [(number % columns) * (wide + ONE.gap), Math.floor(number / columns) * (ONE.height + ONE.gap)];
      picture.append(this.drawOne(one, number, x, y, wide));
    });
    picture.append(this.mark);
    this.place = (/** @type {number} */ number) => ({
      x: (number % columns) * (wide + ONE.gap),
      y: Math.floor(number / columns) * (ONE.height + ONE.gap),
      wide,
    });
    host.replaceChildren(picture);
  }

  /**
   * @param {Histogram} one
   * @param {number} number
   * @param {number} x
   * @param {number} y
   * @param {number} wide
   */
  drawOne(one, number, x, y, wide) {
    const edges = /** @type {import("./bundle.js").Numbers} */ (this.edges);
    const bottom = ONE.height - ONE.bottom;
    const high = top(one) || 1;
    const group = svg("g", { transform: `translate(${x} ${y})` });
    group.append(svg("text", { class: "axis-name", x: 0, y: 11 }, shorten(one.name, Math.floor(wide / 6.5))));
    const [low, end] = [edges[0], edges[edges.length - 1]];
    const at = (/** @type {number} */ value) => ((value - low) / (end - low || 1)) * wide;
    one.counts.forEach((count, bin) => {
      const tall = Math.min(1, count / high) * (bottom - ONE.top);
      const left = at(edges[bin]);
      const box = { x: left, y: bottom - tall, width: Math.max(0.5, at(edges[bin + 1]) - left - 0.4), height: tall };
      const look = `bar series-${this.panel.color % SERIES_COUNT}${bin === one.cut ? " cut" : ""}`;
      group.append(svg("rect", { class: look, ...box, onpointerenter: () => this.say(this.describe(number, bin), false) }));
    });
    group.append(
      svg("line", { class: "axis", x1: 0, x2: wide, y1: bottom, y2: bottom }),
      svg("text", { class: "tick", x: 0, y: bottom + 14 }, formatNumber(low)),
      svg("text", { class: "tick", x: wide, y: bottom + 14, "text-anchor": "end" }, formatNumber(end)),
      svg("text", { class: "tick", x: wide, y: 11, "text-anchor": "end" }, one.note),
    );
    return group;
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
    const place = this.place?.(number);
    if (place && this.mark) {
      const unit = place.wide / (edges[edges.length - 1] - edges[0] || 1);
      const box = { x: place.x + (edges[bin] - edges[0]) * unit, y: place.y + ONE.top - 2, width: Math.max(3, (edges[bin + 1] - edges[bin]) * unit) };
      for (const [name, value] of Object.entries({ ...box, height: ONE.height - ONE.top - ONE.bottom + 2, visibility: "visible" })) {
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
 * Return the end of the axis of counts.
 * @param {Histogram} one
 */
function top(one) {
  if (one.cut === null) return Math.max(0, ...one.counts);
  return OVER_OTHERS * Math.max(0, ...one.counts.filter((_, bin) => bin !== one.cut)) || one.counts[one.cut];
}
