// Small maps in rows and columns on one scale, and the chosen one of them large: all heads of all layers.

import { NumberMap } from "./bundle.js";
import { html } from "./dom.js";
import { canvasPicture, mapTable } from "./heatmap.js";
import { drawHatching, imageOf, MapView } from "./map-view.js";
import { formatNumber, positionName, positionSentence, shorten } from "./numbers.js";
import { onSchemeChange } from "./palette.js";
import { PanelElement } from "./panel-element.js";

/** @typedef {import("./bundle.js").Bundle} Bundle */

const SPACE = 6;
const LARGEST_MAP = 96;
const GUTTER = { left: 70, top: 20 };
const GRID_FONT = "11px ui-sans-serif, system-ui, sans-serif";

export class HeatmapGridElement extends PanelElement {
  content() {
    const { panel } = this;
    const bundle = /** @type {Bundle} */ (this.bundle);
    this.overview = bundle.numbers(panel.overview);
    /** @type {number} */
    this.layer = 0;
    /** @type {number} */
    this.head = 0;
    /** @type {number} */
    this.side = 0;
    this.canvas = html("canvas", { "aria-hidden": "true" });
    this.cursor = html("div", { class: "cursor", hidden: true });
    const [down, across] = panel.axes;
    this.grid = html(
      "div",
      {
        class: "map grid",
        tabindex: 0,
        role: "application",
        "aria-roledescription": "grid of maps",
        "aria-label": `${down.count} by ${across.count} maps. Arrow keys choose ${down.name} and ${across.name}, Enter goes into the map.`,
        onclick: (/** @type {PointerEvent} */ event) => this.onGridPointer(event),
        onfocus: () => this.choose(this.layer ?? 0, this.head ?? 0),
      },
      this.canvas,
      this.cursor,
    );
    this.view = new MapView((text, announced) => this.say(text, announced), (axis, position) => this.lead(axis, position));
    this.heading = html("h4", {});
    this.addEventListener("keydown", (event) => this.onGridKey(event));
    new ResizeObserver(() => this.drawGrid()).observe(this.grid);
    onSchemeChange(() => this.drawGrid());
    if (down.count && across.count) void this.open();
    const keys = `[ and ] change the ${down.name}, comma and period the ${across.name}.`;
    return [
      html("div", { class: "grid-columns" }, html("div", {}, this.grid, html("p", { class: "note" }, keys)), html("div", {}, this.heading, this.view.element, this.view.legend)),
    ];
  }

  hasPicture() {
    return true;
  }

  picture() {
    return canvasPicture(/** @type {MapView} */ (this.view).canvas);
  }

  table() {
    return mapTable(this.chosen(), this.panel.axes.slice(2));
  }

  /** Return the chosen map. */
  chosen() {
    const { layer = 0, head = 0 } = this;
    return new NumberMap(/** @type {Bundle} */ (this.bundle), this.panel.maps[layer][head]);
  }

  chosenName() {
    const [down, across] = this.panel.axes;
    return `${positionSentence(down, this.layer ?? 0)}, ${positionSentence(across, this.head ?? 0)}, `;
  }

  /** Show the chosen map large. */
  async open() {
    const { panel } = this;
    const { low, high, diverging, unit } = panel;
    const [, , down, across] = panel.axes;
    /** @type {HTMLElement} */ (this.heading).textContent = this.chosenName().replace(/, $/, "");
    await this.view?.show({
      map: this.chosen(),
      axes: [down, across],
      scale: { low, high, diverging },
      unit,
      texts: [],
      marks: [],
      prefix: this.chosenName(),
    });
  }

  drawGrid() {
    const { panel, canvas, overview } = this;
    const grid = /** @type {HTMLElement} */ (this.grid);
    const [layers, heads, rows, columns] = panel.overview.shape;
    if (!canvas || !overview || !grid.clientWidth || !layers || !heads || !rows || !columns) return;
    const side = Math.max(6, Math.min(LARGEST_MAP, Math.floor((grid.clientWidth - GUTTER.left) / heads) - SPACE));
    this.side = side;
    const density = Math.max(1, devicePixelRatio);
    const [wide, tall] = [GUTTER.left + heads * (side + SPACE), GUTTER.top + layers * (side + SPACE)];
    canvas.width = Math.ceil(wide * density);
    canvas.height = Math.ceil(tall * density);
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${tall}px`;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(density, density);
    const colors = getComputedStyle(grid);
    const [down, across] = panel.axes;
    context.font = GRID_FONT;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (let layer = 0; layer < layers; layer += 1) {
      context.fillStyle = colors.getPropertyValue("--muted");
      context.textAlign = "right";
      const name = down.labels.length ? shorten(positionName(down, layer), 12) : `${down.name} ${layer}`;
      context.fillText(name, GUTTER.left - 6, GUTTER.top + layer * (side + SPACE) + side / 2, GUTTER.left - 8);
      for (let head = 0; head < heads; head += 1) {
        const [x, y] = [GUTTER.left + head * (side + SPACE), GUTTER.top + layer * (side + SPACE)];
        if (!layer) {
          context.fillStyle = colors.getPropertyValue("--muted");
          context.textAlign = "center";
          context.fillText(shorten(positionName(across, head), 12), x + side / 2, GUTTER.top - 10, side + SPACE - 2);
        }
        const start = (layer * heads + head) * rows * columns;
        const values = overview.subarray(start, start + rows * columns);
        drawHatching(context, x, y, side, side, colors);
        context.imageSmoothingEnabled = rows > side;
        context.drawImage(imageOf({ values, rows, columns }, { low: panel.low, high: panel.high, diverging: panel.diverging }), x, y, side, side);
      }
    }
    this.placeGridCursor();
  }

  placeGridCursor() {
    const { side = 0, layer = 0, head = 0 } = this;
    const cursor = /** @type {HTMLElement} */ (this.cursor);
    cursor.hidden = false;
    cursor.style.left = `${GUTTER.left + head * (side + SPACE)}px`;
    cursor.style.top = `${GUTTER.top + layer * (side + SPACE)}px`;
    cursor.style.width = cursor.style.height = `${side}px`;
  }

  /**
   * Choose a map, and say what is largest in it.
   * @param {number} layer
   * @param {number} head
   */
  choose(layer, head) {
    const [down, across] = this.panel.axes;
    if (!down.count || !across.count) return;
    this.layer = Math.max(0, Math.min(down.count - 1, layer));
    this.head = Math.max(0, Math.min(across.count - 1, head));
    this.placeGridCursor();
    const [, heads, rows, columns] = this.panel.overview.shape;
    const start = (this.layer * heads + this.head) * rows * columns;
    let largest = NaN;
    for (const value of this.overview?.subarray(start, start + rows * columns) ?? []) {
      if (Number.isNaN(largest) || Math.abs(value) > Math.abs(largest)) largest = value;
    }
    this.say(`${this.chosenName()}largest ${formatNumber(largest)}${this.panel.unit ? ` ${this.panel.unit}` : ""}`);
    void this.open();
    if (!this.tableHost.hidden) void this.fillTable(0, 0);
  }

  /**
   * @param {KeyboardEvent} event
   */
  onGridKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { layer = 0, head = 0 } = this;
    const last = [this.panel.axes[0].count - 1, this.panel.axes[1].count - 1];
    /** @type {Record<string, [number, number]>} */
    const always = { "[": [layer - 1, head], "]": [layer + 1, head], ",": [layer, head - 1], ".": [layer, head + 1] };
    /** @type {Record<string, [number, number]>} */
    const inGrid = {
      ArrowUp: [layer - 1, head],
      ArrowDown: [layer + 1, head],
      ArrowLeft: [layer, head - 1],
      ArrowRight: [layer, head + 1],
      Home: [layer, 0],
      End: [layer, last[1]],
      PageUp: [0, head],
      PageDown: [last[0], head],
    };
    const move = always[event.key] ?? (event.target === this.grid ? inGrid[event.key] : undefined);
    if (move) this.choose(...move);
    else if (event.key === "Enter" && event.target === this.grid) this.view?.element.focus();
    else if (event.key === "Escape" && event.target === this.grid) this.grid?.blur();
    else return;
    event.preventDefault();
  }

  /**
   * @param {PointerEvent} event
   */
  onGridPointer(event) {
    const { side = 0 } = this;
    const box = /** @type {HTMLCanvasElement} */ (this.canvas).getBoundingClientRect();
    const head = Math.floor((event.clientX - box.left - GUTTER.left) / (side + SPACE));
    const layer = Math.floor((event.clientY - box.top - GUTTER.top) / (side + SPACE));
    if (layer >= 0 && head >= 0) this.choose(layer, head);
  }

  /**
   * @param {import("./bundle.js").Axis} axis
   * @param {number} position
   */
  follow(axis, position) {
    this.view?.follow(axis, position);
  }
}
