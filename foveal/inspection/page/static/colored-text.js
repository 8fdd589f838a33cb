// Text whose tokens are colored by a number each.

import { html } from "./dom.js";
import { colorBar } from "./map-view.js";
import { formatNumber, positionName, positionSentence, visible } from "./numbers.js";
import { colorOf, kindColor, onSchemeChange } from "./palette.js";
import { PanelElement } from "./panel-element.js";

export class ColoredTextElement extends PanelElement {
  content() {
    this.values = /** @type {import("./bundle.js").Bundle} */ (this.bundle).numbers(this.panel.values);
    /** @type {number} */
    this.row = 0;
    /** @type {number} */
    this.token = 0;
    const [rows] = this.panel.axes;
    const options = Array.from({ length: rows.count }, (_, row) =>
      html("option", { value: row }, rows.labels.length ? visible(rows.labels[row]) : `${rows.name} ${row}`),
    );
    this.chooser = html("select", { onchange: (/** @type {Event} */ event) => this.choose(Number(/** @type {HTMLSelectElement} */ (event.target).value)) }, ...options);
    this.spans = this.panel.tokens.map((/** @type {string} */ token, /** @type {number} */ place) =>
      html("span", { class: "token", "data-place": place }, token.endsWith("\n") ? `${token.slice(0, -1)}⏎\n` : token),
    );
    this.host = html(
      "div",
      {
        class: "colored-text",
        tabindex: 0,
        dir: "auto",
        role: "application",
        "aria-roledescription": "colored text",
        "aria-label": `${this.panel.sentence}. Left and right move from token to token, [ and ] change the ${rows.name}.`,
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event),
        onpointerover: (/** @type {PointerEvent} */ event) => this.onPointer(event, false),
        onclick: (/** @type {PointerEvent} */ event) => this.onPointer(event, true),
        onfocus: () => this.moved(),
      },
      ...this.spans,
    );
    onSchemeChange(() => this.color());
    this.legend = html("div", { class: "legend" });
    this.color();
    const label = html("label", { class: "chooser" }, `${rows.name} `, this.chooser);
    return [...(rows.count > 1 ? [label] : []), this.host, this.legend];
  }

  table() {
    const [rows, tokens] = this.panel.axes;
    const every = [...Array(rows.count).keys()];
    return {
      columns: ["token", ...every.map((row) => positionName(rows, row))],
      count: tokens.count,
      rows: async (/** @type {number} */ from, /** @type {number} */ to) =>
        Array.from({ length: to - from }, (_, place) => [
          visible(this.panel.tokens[from + place]),
          ...every.map((row) => this.panel.kinds[this.value(row, from + place)] ?? formatNumber(this.value(row, from + place))),
        ]),
    };
  }

  /**
   * @param {number} row
   * @param {number} token
   */
  value(row, token) {
    return this.values?.[row * this.panel.axes[1].count + token] ?? NaN;
  }

  /** Color the text by the chosen row. */
  color() {
    this.spans?.forEach((/** @type {HTMLElement} */ span, /** @type {number} */ place) => {
      const { fill, letters } = this.colorOf(this.value(this.row ?? 0, place));
      span.style.backgroundColor = fill;
      span.style.color = letters;
    });
    this.legend?.replaceChildren(...this.keys());
  }

  /**
   * Return the color of a value: of an amount by the scale, of a kind by its number.
   * @param {number} value
   */
  colorOf(value) {
    /** @type {string[]} */
    const kinds = this.panel.kinds;
    if (!kinds.length || !Number.isFinite(value)) return colorOf(value, /** @type {any} */ (this.panel));
    return kindColor(value, kinds.length);
  }

  /** Return the scale, or the color of each kind. */
  keys() {
    /** @type {string[]} */
    const kinds = this.panel.kinds;
    if (!kinds.length) return [colorBar(/** @type {any} */ (this.panel), this.panel.unit)];
    return kinds.map((kind, number) => {
      const key = html("span", { class: "token" }, html("bdi", {}, ` ${kind} `));
      const { fill, letters } = kindColor(number, kinds.length);
      key.style.backgroundColor = fill;
      key.style.color = letters;
      return key;
    });
  }

  /**
   * @param {number} row
   */
  choose(row) {
    this.row = Math.max(0, Math.min(this.panel.axes[0].count - 1, row));
    if (this.chooser) this.chooser.value = String(this.row);
    this.color();
    this.moved();
  }

  /**
   * @param {number} token
   */
  describe(token) {
    const [rows] = this.panel.axes;
    const number = this.value(this.row ?? 0, token);
    const kind = this.panel.kinds[number];
    const value = kind === undefined ? `${formatNumber(number)}${this.panel.unit ? ` ${this.panel.unit}` : ""}` : kind;
    return `token '${visible(this.panel.tokens[token])}', ${positionSentence(rows, this.row ?? 0)}: ${value}`;
  }

  moved() {
    const { token = 0, spans = [] } = this;
    if (!spans.length || !this.panel.axes[0].count) return;
    this.frame(token);
    this.say(this.describe(token));
    this.lead(this.panel.axes[1], token);
  }

  /**
   * @param {number} token
   */
  frame(token) {
    this.host?.querySelector(".at-cursor")?.classList.remove("at-cursor");
    this.spans[token]?.classList.add("at-cursor");
  }

  /**
   * @param {KeyboardEvent} event
   */
  onKey(event) {
    const last = this.panel.tokens.length - 1;
    let { token = 0 } = this;
    const { row = 0 } = this;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "ArrowLeft") token -= 1;
    else if (event.key === "ArrowRight") token += 1;
    else if (event.key === "ArrowUp" || event.key === "PageUp") token -= 10;
    else if (event.key === "ArrowDown" || event.key === "PageDown") token += 10;
    else if (event.key === "Home") token = 0;
    else if (event.key === "End") token = last;
    else if (event.key === "[" || event.key === "]") {
      event.preventDefault();
      this.choose(row + (event.key === "]" ? 1 : -1));
      return;
    } else if (event.key === "Escape") {
      this.host?.blur();
      return;
    } else return;
    event.preventDefault();
    this.token = Math.max(0, Math.min(last, token));
    this.moved();
    this.spans[this.token]?.scrollIntoView({ block: "nearest" });
  }

  /**
   * @param {PointerEvent} event
   * @param {boolean} chosen
   */
  onPointer(event, chosen) {
    const place = /** @type {HTMLElement} */ (event.target).dataset.place;
    if (place === undefined) return;
    if (chosen) {
      this.token = Number(place);
      this.moved();
    } else this.say(this.describe(Number(place)), false);
  }

  /**
   * @param {import("./bundle.js").Axis} axis
   * @param {number} position
   */
  follow(axis, position) {
    const own = this.panel.axes[1];
    const labels = own.labels.length ? own.labels : this.panel.tokens;
    if (axis.count !== own.count || !axis.labels.every((label, place) => label === labels[place])) return;
    if (!axis.labels.length && axis.name !== own.name) return;
    this.token = position;
    this.frame(position);
  }
}
