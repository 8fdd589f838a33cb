// Bars side by side, for each position of an axis.

import { drawAxes, Scale, svgPicture } from "./chart.js";
import { html, svg } from "./dom.js";
import { formatNumber, positionName, positionSentence, shorten, wrapWords } from "./numbers.js";
import { SERIES_COUNT } from "./palette.js";
import { PanelElement } from "./panel-element.js";

const BAR_MARGINS = { left: 52, right: 10, top: 22 };
const BAR_HEIGHT = 280;
const LABEL_LETTER = 6.5; // pixels of a letter of a label, and of a line of them
const LABEL_LINE = 13;
const LABEL_LINES = 3;
const BAR_LABEL_LETTERS = 40;

export class BarsElement extends PanelElement {
  content() {
    this.values = /** @type {import("./bundle.js").Bundle} */ (this.bundle).numbers(this.panel.values);
    /** @type {number} */
    this.series = 0;
    /** @type {number} */
    this.position = 0;
    const [series, positions] = this.panel.axes;
    this.host = html("div", {
      class: "chart",
      tabindex: 0,
      role: "application",
      "aria-roledescription": "bar chart",
      "aria-label": `${this.panel.sentence}. Left and right move along ${positions.name || "the bars"}, up and down to another ${series.name || "series"}.`,
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event),
      onfocus: () => this.moved(),
    });
    new ResizeObserver(() => this.draw()).observe(this.host);
    const names = Array.from({ length: series.count }, (_, row) =>
      html("span", { class: `key series-${row % SERIES_COUNT}` }, html("bdi", {}, positionName(series, row))),
    );
    return [this.host, html("div", { class: "legend" }, ...(series.count > 1 ? names : []))];
  }

  hasPicture() {
    return true;
  }

  async picture() {
    const picture = this.host?.querySelector("svg");
    return picture ? svgPicture(picture) : null;
  }

  /**
   * @param {number} series
   * @param {number} position
   */
  value(series, position) {
    return this.values?.[series * this.panel.axes[1].count + position] ?? NaN;
  }

  table() {
    const [series, positions] = this.panel.axes;
    const every = [...Array(series.count).keys()];
    return {
      columns: [positions.name || "bar", ...every.map((row) => positionName(series, row))],
      count: positions.count,
      rows: async (/** @type {number} */ from, /** @type {number} */ to) =>
        Array.from({ length: to - from }, (_, row) => [
          positions.labels.length ? positions.labels[from + row] : String(from + row + 1), // counted from 1, as drawn
          ...every.map((one) => formatNumber(this.value(one, from + row))),
        ]),
    };
  }

  draw() {
    const { host, values, panel } = this;
    if (!host || !values || !host.clientWidth) return;
    const [series, positions] = panel.axes;
    const width = host.clientWidth;
    /** @type {string[]} */
    const labels = positions.labels.map((/** @type {string} */ one) => shorten(one, BAR_LABEL_LETTERS));
    const frame = { left: BAR_MARGINS.left, right: width - BAR_MARGINS.right, top: BAR_MARGINS.top, bottom: BAR_HEIGHT - 36 };
    const finite = [...values].filter(Number.isFinite);
    const high = panel.high ?? (Math.max(0, ...finite) || 1);
    const x = new Scale({ low: -0.5, high: Math.max(0.5, positions.count - 0.5), log: false }, frame.left, frame.right);
    const y = new Scale({ low: Math.min(0, ...finite), high, log: false }, frame.bottom, frame.top);
    const room = (frame.right - frame.left) / Math.max(1, positions.count);
    const wrapped = labels.map((label) => wrapWords(label, room / LABEL_LETTER));
    const turned = wrapped.some((lines) => lines.length > LABEL_LINES || lines.some((line) => line.length * LABEL_LETTER > room));
    const lines = turned ? labels.map((label) => [label]) : wrapped;
    const longest = Math.max(0, ...labels.map((label) => label.length));
    const tallest = Math.max(0, ...lines.map((one) => one.length));
    const below = !labels.length ? 36 : turned ? 14 + longest * LABEL_LETTER : 9 + tallest * LABEL_LINE;
    const wide = (0.8 * room) / Math.max(1, series.count);
    const bars = svg("g");
    for (let row = 0; row < series.count; row += 1) {
      for (let position = 0; position < positions.count; position += 1) {
        const value = this.value(row, position);
        if (!Number.isFinite(value)) continue;
        const [top, bottom] = [Math.min(y.at(value), y.at(0)), Math.max(y.at(value), y.at(0))];
        const left = x.at(position) - 0.4 * room + row * wide;
        const bar = { class: `bar series-${row % SERIES_COUNT}`, x: left, y: top, width: Math.max(0.5, wide - 0.5), height: bottom - top };
        const tip = () => this.say(this.describe(row, position), false);
        bars.append(svg("rect", { ...bar, onpointerenter: tip }));
      }
    }
    const every = Math.max(1, Math.ceil((labels.length ? 12 : 30) / room));
    const places = [...Array(positions.count).keys()].filter((place) => place % every === 0);
    /** @type {[number, string][]} */
    const ticks = labels.length ? [] : places.map((place) => [place, String(place + 1)]);
    const axes = drawAxes(frame, x, y, { x: labels.length ? "" : positions.name, y: panel.unit, ticksX: ticks });
    const names = labels.length
      ? places.map((place) =>
          svg(
            "text",
            { class: "tick", "text-anchor": turned ? "end" : "middle", transform: turned ? `translate(${x.at(place) + 4} ${frame.bottom + 8}) rotate(-90)` : `translate(${x.at(place)} ${frame.bottom + 15})` },
            ...lines[place].map((line, number) => svg("tspan", { x: 0, dy: number && LABEL_LINE }, line)),
          ),
        )
      : [];
    const height = frame.bottom + below;
    this.mark = svg("rect", { class: "bar-cursor", visibility: "hidden", width: Math.max(3, wide), height: frame.bottom - frame.top, y: frame.top });
    this.left = (/** @type {number} */ row, /** @type {number} */ place) => x.at(place) - 0.4 * room + row * wide;
    host.replaceChildren(svg("svg", { width, height, "aria-hidden": "true", focusable: "false" }, axes, bars, ...names, this.mark));
  }

  /**
   * @param {number} row
   * @param {number} position
   */
  describe(row, position) {
    const [series, positions] = this.panel.axes;
    const name = positions.labels.length ? positionSentence(positions, position) : `${positions.name} ${position + 1}`.trim();
    const prefix = series.count > 1 ? `${positionSentence(series, row)}, ` : "";
    return `${prefix}${name}: ${formatNumber(this.value(row, position))}${this.panel.unit ? ` ${this.panel.unit}` : ""}`;
  }

  moved() {
    const { series = 0, position = 0 } = this;
    if (!this.panel.axes[0].count || !this.panel.axes[1].count) return;
    this.mark?.setAttribute("x", String(this.left?.(series, position) ?? 0));
    this.mark?.setAttribute("visibility", "visible");
    this.say(this.describe(series, position));
    this.lead(this.panel.axes[1], position);
  }

  /**
   * @param {KeyboardEvent} event
   */
  onKey(event) {
    const [rows, positions] = this.panel.axes;
    let { series = 0, position = 0 } = this;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "ArrowLeft") position -= 1;
    else if (event.key === "ArrowRight") position += 1;
    else if (event.key === "ArrowUp") series -= 1;
    else if (event.key === "ArrowDown") series += 1;
    else if (event.key === "PageUp") position -= 10;
    else if (event.key === "PageDown") position += 10;
    else if (event.key === "Home") position = 0;
    else if (event.key === "End") position = positions.count - 1;
    else if (event.key === "Escape") {
      this.host?.blur();
      return;
    } else return;
    event.preventDefault();
    this.series = Math.max(0, Math.min(rows.count - 1, series));
    this.position = Math.max(0, Math.min(positions.count - 1, position));
    this.moved();
  }

  /**
   * @param {import("./bundle.js").Axis} axis
   * @param {number} position
   */
  follow(axis, position) {
    const own = this.panel.axes[1];
    if (axis.name !== own.name || axis.count !== own.count) return;
    this.position = position;
    this.mark?.setAttribute("x", String(this.left?.(this.series ?? 0, position) ?? 0));
    this.mark?.setAttribute("visibility", "visible");
  }
}
