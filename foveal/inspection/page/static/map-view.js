// A map of numbers with a cursor: drawn on a canvas, read by keys, pointer and voice.

import { html } from "./dom.js";
import { formatNumber, positionName, positionSentence, shorten } from "./numbers.js";
import { colorOf, colorTable, onSchemeChange, shadeOf } from "./palette.js";

/** @typedef {import("./bundle.js").Axis} Axis */
/** @typedef {import("./bundle.js").NumberMap} NumberMap */
/** @typedef {{low: number, high: number, diverging: boolean}} Scale */
/** @typedef {{top: number, left: number, rows: number, columns: number}} Area */
/** @typedef {{map: NumberMap, axes: [Axis, Axis], scale: Scale, unit: string, texts: string[][], prefix: string}} MapContent */

const LARGEST_CELL = 32;
const TALLEST = 560;
const SMALLEST_ZOOM = 8;
const LETTER_HEIGHT = 13;
const LABEL_LETTERS = 18;
const GAP_FROM = 12; // pixels of a cell from which cells are parted by a line
const TEXT_FROM = 20;
const FONT = "11px ui-sans-serif, system-ui, sans-serif";
const PAGE = 10;

export class MapView {
  /**
   * @param {(text: string, announced: boolean) => void} say
   * @param {(axis: Axis, position: number) => void} lead
   */
  constructor(say, lead) {
    this.say = say;
    this.lead = lead;
    /** @type {MapContent | null} */
    this.content = null;
    /** @type {Area} */
    this.area = { top: 0, left: 0, rows: 0, columns: 0 };
    this.row = 0;
    this.column = 0;
    this.pool = 1;
    this.cell = 1;
    this.corner = { x: 0, y: 0 };
    this.pinned = "";
    this.drawing = 0;
    this.width = 0;
    this.canvas = html("canvas", { "aria-hidden": "true" });
    this.cursor = html("div", { class: "cursor", hidden: true });
    this.element = html(
      "div",
      {
        class: "map",
        tabindex: 0,
        role: "application",
        "aria-roledescription": "map",
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event),
        onpointermove: (/** @type {PointerEvent} */ event) => this.onPointer(event, false),
        onclick: (/** @type {PointerEvent} */ event) => this.onPointer(event, true),
        onfocus: () => void this.moved(),
      },
      this.canvas,
      this.cursor,
    );
    this.legend = html("div", { class: "legend" });
    new ResizeObserver(() => {
      if (this.element.clientWidth !== this.width) void this.draw();
    }).observe(this.element);
    onSchemeChange(() => void this.draw());
  }

  /**
   * Show a map. The cursor stays where it was, if the map has as many cells.
   * @param {MapContent} content
   */
  show(content) {
    const { map } = content;
    const before = this.content?.map;
    if (before?.rows !== map.rows || before.columns !== map.columns) {
      this.area = { top: 0, left: 0, rows: map.rows, columns: map.columns };
      this.row = this.column = 0;
    }
    this.content = content;
    const [down, across] = content.axes;
    this.element.setAttribute(
      "aria-label",
      `${content.prefix}map of ${down.name} by ${across.name}. Arrow keys move from cell to cell, plus and minus zoom, T shows a table.`,
    );
    return this.draw();
  }

  /** Draw the window of the map. */
  async draw() {
    const { content } = this;
    this.width = this.element.clientWidth;
    if (!content || !this.width || !content.map.rows || !content.map.columns) return;
    this.drawing += 1;
    const drawing = this.drawing;
    const context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    context.font = FONT;
    const [down, across] = content.axes;
    const gutterLeft = Math.min(labelWidth(context, down, this.area.top, this.area.rows), this.width * 0.34) + 8;
    const gutterTop = !isUpright(across) ? Math.min(130, labelWidth(context, across, this.area.left, this.area.columns) + 8) : 20;
    const room = Math.max(60, this.width - gutterLeft - 2);
    const side = Math.max(16, Math.floor(Math.min(room, 640)));
    const shown = await content.map.window(this.area, side);
    if (drawing !== this.drawing) return; // a newer drawing began while the numbers came
    let cell = Math.min(LARGEST_CELL, room / shown.columns, TALLEST / shown.rows);
    if (cell >= 3) cell = Math.floor(cell);
    this.cell = cell;
    this.pool = shown.pool;
    this.corner = { x: gutterLeft, y: gutterTop };
    const [wide, tall] = [cell * shown.columns, cell * shown.rows];
    const density = Math.max(1, devicePixelRatio);
    this.canvas.width = Math.ceil((gutterLeft + wide + 2) * density);
    this.canvas.height = Math.ceil((gutterTop + tall + 2) * density);
    this.canvas.style.width = `${this.canvas.width / density}px`;
    this.canvas.style.height = `${this.canvas.height / density}px`;
    context.scale(density, density);
    const colors = getComputedStyle(this.element);
    drawHatching(context, gutterLeft, gutterTop, wide, tall, colors);
    context.imageSmoothingEnabled = false;
    context.drawImage(imageOf(shown, content.scale), gutterLeft, gutterTop, wide, tall);
    if (cell >= GAP_FROM) drawGaps(context, gutterLeft, gutterTop, shown, cell, colors);
    if (shown.pool === 1 && cell >= TEXT_FROM && content.texts.length) this.drawTexts(context, shown);
    this.drawLabels(context, shown, colors);
    this.writeLegend();
    this.placeCursor();
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {{values: import("./bundle.js").Numbers, rows: number, columns: number}} shown
   */
  drawTexts(context, shown) {
    const { texts, scale } = /** @type {MapContent} */ (this.content);
    context.font = FONT;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let row = 0; row < shown.rows; row += 1) {
      for (let column = 0; column < shown.columns; column += 1) {
        context.fillStyle = colorOf(shown.values[row * shown.columns + column], scale).letters;
        const [x, y] = [this.corner.x + (column + 0.5) * this.cell, this.corner.y + (row + 0.5) * this.cell];
        context.fillText(texts[this.area.top + row][this.area.left + column], x, y, this.cell - 2);
      }
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {{rows: number, columns: number, pool: number}} shown
   * @param {CSSStyleDeclaration} colors
   */
  drawLabels(context, shown, colors) {
    const [down, across] = /** @type {MapContent} */ (this.content).axes;
    context.font = FONT;
    context.fillStyle = colors.getPropertyValue("--muted");
    context.textBaseline = "middle";
    context.textAlign = "right";
    const every = Math.max(1, Math.ceil(LETTER_HEIGHT / this.cell));
    for (let row = 0; row < shown.rows; row += every) {
      const name = shorten(positionName(down, this.area.top + row * shown.pool), LABEL_LETTERS);
      context.fillText(name, this.corner.x - 6, this.corner.y + (row + 0.5) * this.cell, this.corner.x - 8);
    }
    const upright = isUpright(across);
    const apart = upright ? Math.max(1, Math.ceil((across.labels.length ? LETTER_HEIGHT : 34) / this.cell)) : every;
    for (let column = 0; column < shown.columns; column += apart) {
      const name = shorten(positionName(across, this.area.left + column * shown.pool), LABEL_LETTERS);
      const x = this.corner.x + (column + 0.5) * this.cell;
      if (upright) {
        context.textAlign = "center";
        context.fillText(name, x, this.corner.y - 10);
      } else {
        context.save();
        context.translate(x, this.corner.y - 6);
        context.rotate(-Math.PI / 2);
        context.textAlign = "left";
        context.fillText(name, 0, 0, this.corner.y - 8);
        context.restore();
      }
    }
  }

  writeLegend() {
    const { axes, scale, unit, map } = /** @type {MapContent} */ (this.content);
    const notes = [`${axes[0].name} down, ${axes[1].name} across`];
    if (this.pool > 1) notes.push(`each square is the largest of ${this.pool} × ${this.pool} cells: + zooms in`);
    if (map.rounded) notes.push("numbers within 0.004");
    this.legend.replaceChildren(colorBar(scale, unit), html("span", { class: "note" }, notes.join("; ")));
  }

  /** Put the frame on the cell at the cursor. */
  placeCursor() {
    const size = this.cell;
    const place = (/** @type {number} */ position, /** @type {number} */ start) => Math.floor((position - start) / this.pool) * size;
    const { style } = this.cursor;
    this.cursor.hidden = false;
    style.left = `${this.corner.x + place(this.column, this.area.left)}px`;
    style.top = `${this.corner.y + place(this.row, this.area.top)}px`;
    style.width = style.height = `${Math.max(4, size)}px`;
  }

  /**
   * Return what is announced of a cell, or of the cells that one square stands for.
   * @param {number} row
   * @param {number} column
   * @returns {Promise<string>}
   */
  async describe(row, column) {
    const { map, axes, unit, texts, prefix } = /** @type {MapContent} */ (this.content);
    const [down, across] = axes;
    const about = map.rounded ? "about " : "";
    if (this.pool === 1) {
      const cells = await map.cells({ top: row, left: column, rows: 1, columns: 1 });
      const text = texts.length && texts[row][column] ? ` (${texts[row][column]})` : "";
      const value = `${about}${formatNumber(cells.values[0])}${unit ? ` ${unit}` : ""}${text}`;
      return `${prefix}${positionSentence(down, row)}, ${positionSentence(across, column)}: ${value}`;
    }
    const area = this.square(row, column);
    const shown = await map.window(this.area, Math.ceil(Math.max(this.area.rows, this.area.columns) / this.pool));
    const place = Math.floor((row - this.area.top) / this.pool) * shown.columns + Math.floor((column - this.area.left) / this.pool);
    const names = [range(down, area.top, area.rows), range(across, area.left, area.columns)];
    return `${prefix}${names.join(", ")}: largest ${about}${formatNumber(shown.values[place])}${unit ? ` ${unit}` : ""}`;
  }

  /**
   * Return the cells of the square at a cell.
   * @param {number} row
   * @param {number} column
   * @returns {Area}
   */
  square(row, column) {
    const { map } = /** @type {MapContent} */ (this.content);
    const top = this.area.top + Math.floor((row - this.area.top) / this.pool) * this.pool;
    const left = this.area.left + Math.floor((column - this.area.left) / this.pool) * this.pool;
    return { top, left, rows: Math.min(this.pool, map.rows - top), columns: Math.min(this.pool, map.columns - left) };
  }

  /** Show and announce the cell at the cursor. */
  async moved() {
    const { content } = this;
    if (!content || !content.map.rows || !content.map.columns) return;
    if (this.scroll()) await this.draw();
    this.placeCursor();
    const text = await this.describe(this.row, this.column);
    this.say(this.pinned ? `${text}; pinned: ${this.pinned}` : text, true);
    this.lead(content.axes[0], this.row);
    this.lead(content.axes[1], this.column);
  }

  /** Move the window so that the cursor is in it. Return whether it moved. */
  scroll() {
    const { map } = /** @type {MapContent} */ (this.content);
    const { top, left, rows, columns } = this.area;
    const slide = (/** @type {number} */ start, /** @type {number} */ length, /** @type {number} */ place, /** @type {number} */ end) =>
      place >= start && place < start + length ? start : Math.max(0, Math.min(end - length, place - Math.floor(length / 2)));
    this.area = { rows, columns, top: slide(top, rows, this.row, map.rows), left: slide(left, columns, this.column, map.columns) };
    return this.area.top !== top || this.area.left !== left;
  }

  /**
   * Show `factor` times as many rows and columns around the cursor.
   * @param {number} factor
   */
  async zoom(factor) {
    const { map } = /** @type {MapContent} */ (this.content);
    const whole = Math.max(map.rows, map.columns);
    let size = Math.round(Math.max(this.area.rows, this.area.columns) * factor);
    // Between the overview and its tiles there is nothing to draw.
    if (map.reach < whole && size < whole && size > map.reach) size = factor < 1 ? map.reach : whole;
    size = Math.min(whole, Math.max(SMALLEST_ZOOM, size));
    const [rows, columns] = [Math.min(map.rows, size), Math.min(map.columns, size)];
    const start = (/** @type {number} */ place, /** @type {number} */ length, /** @type {number} */ end) =>
      Math.max(0, Math.min(end - length, place - Math.floor(length / 2)));
    this.area = { rows, columns, top: start(this.row, rows, map.rows), left: start(this.column, columns, map.columns) };
    await this.draw();
    await this.moved();
  }

  /**
   * @param {KeyboardEvent} event
   */
  onKey(event) {
    const { content } = this;
    if (!content || event.altKey || event.metaKey) return;
    const { rows, columns } = content.map;
    const far = event.ctrlKey;
    /** @type {Record<string, () => void>} */
    const moves = {
      ArrowUp: () => (this.row -= this.pool),
      ArrowDown: () => (this.row += this.pool),
      ArrowLeft: () => (this.column -= this.pool),
      ArrowRight: () => (this.column += this.pool),
      PageUp: () => (this.row -= PAGE * this.pool),
      PageDown: () => (this.row += PAGE * this.pool),
      Home: () => ([this.row, this.column] = [far ? 0 : this.row, 0]),
      End: () => ([this.row, this.column] = [far ? rows - 1 : this.row, columns - 1]),
    };
    if (moves[event.key]) {
      moves[event.key]();
      this.row = Math.max(0, Math.min(rows - 1, this.row));
      this.column = Math.max(0, Math.min(columns - 1, this.column));
      void this.moved();
    } else if (event.key === "+" || event.key === "=") void this.zoom(0.5);
    else if (event.key === "-") void this.zoom(2);
    else if (event.key === "Enter") void this.pin();
    else if (event.key === "Escape") this.leave();
    else return;
    event.preventDefault();
  }

  /** Keep the text of this cell beside that of others. */
  async pin() {
    this.pinned = await this.describe(this.row, this.column);
    await this.moved();
  }

  /** Unpin; else show the whole map; else leave. */
  leave() {
    const { map } = /** @type {MapContent} */ (this.content);
    if (this.pinned) {
      this.pinned = "";
      void this.moved();
    } else if (this.area.rows < map.rows || this.area.columns < map.columns) void this.zoom(Infinity);
    else this.element.blur();
  }

  /**
   * @param {PointerEvent} event
   * @param {boolean} chosen
   */
  onPointer(event, chosen) {
    if (!this.content) return;
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.corner.x) / this.cell);
    const row = Math.floor((event.clientY - box.top - this.corner.y) / this.cell);
    if (row < 0 || column < 0 || row * this.pool >= this.area.rows || column * this.pool >= this.area.columns) return;
    const [down, across] = [this.area.top + row * this.pool, this.area.left + column * this.pool];
    if (chosen) {
      [this.row, this.column] = [down, across];
      void this.moved();
    } else void this.describe(down, across).then((text) => this.say(text, false));
  }

  /**
   * Move the cursor to a position of an axis of another panel.
   * @param {Axis} axis
   * @param {number} position
   */
  follow(axis, position) {
    const { content } = this;
    if (!content) return;
    const same = content.axes.map((own) => isSameAxis(own, axis));
    if (same[0]) this.row = position;
    else if (same[1]) this.column = position;
    else return;
    void (this.scroll() ? this.draw() : Promise.resolve()).then(() => this.placeCursor());
  }
}

/**
 * Return whether the labels of an axis fit above the cells as they are: numbers and single letters.
 * @param {Axis} axis
 * @returns {boolean}
 */
function isUpright(axis) {
  return axis.labels.every((label) => label.length <= 1);
}

/**
 * Return whether two axes have the same positions.
 * @param {Axis} one
 * @param {Axis} other
 * @returns {boolean}
 */
export function isSameAxis(one, other) {
  return one.name === other.name && one.count === other.count && one.labels.every((label, place) => label === other.labels[place]);
}

/**
 * Return a bar with the colors of a scale, and its limits.
 * @param {Scale} scale
 * @param {string} unit
 * @returns {HTMLElement}
 */
export function colorBar(scale, unit) {
  const canvas = html("canvas", { width: 256, height: 1, class: "color-bar", "aria-hidden": "true" });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(256, 1);
  const table = colorTable(scale.diverging);
  for (let shade = 0; shade < 256; shade += 1) image.data.set([...table.subarray(3 * shade, 3 * shade + 3), 255], 4 * shade);
  context.putImageData(image, 0, 0);
  return html(
    "span",
    { class: "scale" },
    html("span", {}, formatNumber(scale.low)),
    canvas,
    html("span", {}, `${formatNumber(scale.high)}${unit ? ` ${unit}` : ""}`),
  );
}

/**
 * Return cells as an image with a pixel each. Cells without a number are transparent.
 * @param {{values: import("./bundle.js").Numbers, rows: number, columns: number}} cells
 * @param {Scale} scale
 * @returns {HTMLCanvasElement}
 */
export function imageOf(cells, scale) {
  const canvas = html("canvas", { width: cells.columns, height: cells.rows });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(cells.columns, cells.rows);
  const table = colorTable(scale.diverging);
  for (let place = 0; place < cells.rows * cells.columns; place += 1) {
    const shade = shadeOf(cells.values[place], scale.low, scale.high);
    if (shade < 0) continue;
    image.data[4 * place] = table[3 * shade];
    image.data[4 * place + 1] = table[3 * shade + 1];
    image.data[4 * place + 2] = table[3 * shade + 2];
    image.data[4 * place + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/**
 * Hatch an area: what is not painted over has no number.
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 * @param {CSSStyleDeclaration} colors
 */
export function drawHatching(context, x, y, width, height, colors) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.fillStyle = colors.getPropertyValue("--hatch-ground");
  context.fillRect(x, y, width, height);
  context.strokeStyle = colors.getPropertyValue("--hatch");
  context.lineWidth = 1;
  context.beginPath();
  for (let start = -height; start < width; start += 6) {
    context.moveTo(x + start, y + height);
    context.lineTo(x + start + height, y);
  }
  context.stroke();
  context.restore();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {{rows: number, columns: number}} shown
 * @param {number} cell
 * @param {CSSStyleDeclaration} colors
 */
function drawGaps(context, x, y, shown, cell, colors) {
  context.fillStyle = colors.getPropertyValue("--surface");
  for (let row = 1; row < shown.rows; row += 1) context.fillRect(x, y + row * cell - 0.5, shown.columns * cell, 1);
  for (let column = 1; column < shown.columns; column += 1) context.fillRect(x + column * cell - 0.5, y, 1, shown.rows * cell);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Axis} axis
 * @param {number} start
 * @param {number} count
 * @returns {number}
 */
function labelWidth(context, axis, start, count) {
  const every = Math.max(1, Math.floor(count / 200));
  let width = 0;
  for (let place = start; place < start + count; place += every) {
    width = Math.max(width, context.measureText(shorten(positionName(axis, place), LABEL_LETTERS)).width);
  }
  return width;
}

/**
 * @param {Axis} axis
 * @param {number} start
 * @param {number} count
 * @returns {string}
 */
function range(axis, start, count) {
  const first = positionSentence(axis, start);
  return count === 1 ? first : `${first} to ${positionName(axis, start + count - 1)}`;
}
