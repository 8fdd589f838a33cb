// Rows of images, with captions below them, marks over them, and numbers over them in squares.

import { html, svg } from "./dom.js";
import { formatNumber } from "./numbers.js";
import { PanelElement } from "./panel-element.js";

/** @typedef {import("./bundle.js").Caption} Caption */
/** @typedef {{role: string, dotted: boolean, closed: boolean, numbered: boolean, points: [number, number][], end: string}} Mark */
/** @typedef {{height: number, width: number, png: import("./bundle.js").Place, captions: Caption[], marks: Mark[],
 *   heat: import("./bundle.js").ArrayReference | null}} Tile */
/** @typedef {{name: string, captions: Caption[], tiles: (Tile | null)[]}} ImageRow */
/** @typedef {{element: HTMLElement, tile: Tile, row: number, column: number, heat: import("./bundle.js").Numbers | null, cell: HTMLElement}} Shown */

const PIXELS_PER_INCH = 96;
const HEAT_STOPS = [
  [0, 0, 4], [40, 11, 84], [101, 21, 110], [159, 42, 99], [212, 72, 66], [245, 125, 21], [250, 193, 39], [252, 255, 164],
]; // inferno

export class ImagesElement extends PanelElement {
  content() {
    /** @type {Shown[]} */
    this.shown = [];
    /** @type {number} */
    this.at = 0;
    /** @type {number} */
    this.square = -1; // the cell of the heat at the cursor; -1 is the image itself
    const rows = this.rows().map((row, number) => this.drawRow(row, number));
    this.host = html(
      "div",
      {
        class: "images",
        tabindex: 0,
        role: "application",
        "aria-roledescription": "images",
        "aria-label": `${this.panel.sentence}. Arrow keys move from image to image${this.hasHeat() ? ", Enter goes into its squares" : ""}.`,
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event),
        onpointermove: (/** @type {PointerEvent} */ event) => this.onPointer(event, false),
        onclick: (/** @type {PointerEvent} */ event) => this.onPointer(event, true),
        onfocus: () => this.moved(),
      },
      ...rows,
    );
    return [this.host];
  }

  /** @returns {ImageRow[]} */
  rows() {
    return this.panel.rows;
  }

  hasHeat() {
    return this.rows().some((row) => row.tiles.some((tile) => tile?.heat));
  }

  table() {
    const heads = ["row", "image", "captions", "size"];
    const cells = this.rows().flatMap((row, number) =>
      row.tiles.flatMap((tile, column) =>
        tile
          ? [[row.name || String(number + 1), String(column + 1), tile.captions.map((one) => one.text).join("; "), `${tile.height} × ${tile.width}`]]
          : [],
      ),
    );
    if (!this.hasHeat()) return { columns: heads, count: cells.length, rows: async (/** @type {number} */ from, /** @type {number} */ to) => cells.slice(from, to) };
    const lines = (this.shown ?? []).flatMap(({ tile, heat }, place) =>
      Array.from(heat ?? [], (value, square) => {
        const columns = tile.heat?.shape[1] ?? 1;
        return [...cells[place].slice(0, 3), String(Math.floor(square / columns)), String(square % columns), formatNumber(value)];
      }),
    );
    return {
      columns: ["row", "image", "captions", "down", "across", "value"],
      count: lines.length,
      rows: async (/** @type {number} */ from, /** @type {number} */ to) => lines.slice(from, to),
    };
  }

  /**
   * @param {ImageRow} row
   * @param {number} number
   */
  drawRow(row, number) {
    const strip = html("div", { class: "image-strip" });
    strip.style.gap = `${Math.max(3, this.panel.gap * PIXELS_PER_INCH)}px`;
    row.tiles.forEach((tile, column) => strip.append(tile ? this.drawTile(tile, number, column) : this.emptyPlace()));
    const captions = row.captions.map((caption) => html("p", { class: `caption role-${caption.role}` }, html("bdi", {}, caption.text)));
    const name = row.name ? html("div", { class: "row-name" }, html("bdi", {}, row.name)) : null;
    return html("div", { class: "image-row" }, name, html("div", {}, strip, ...captions));
  }

  emptyPlace() {
    const place = html("div", { class: "tile" });
    place.style.width = `${this.panel.tile_size * PIXELS_PER_INCH}px`;
    return place;
  }

  /**
   * @param {Tile} tile
   * @param {number} row
   * @param {number} column
   */
  drawTile(tile, row, column) {
    const bundle = /** @type {import("./bundle.js").Bundle} */ (this.bundle);
    const scale = (this.panel.tile_size * PIXELS_PER_INCH) / Math.max(tile.height, tile.width);
    const [width, height] = [Math.max(1, tile.width * scale), Math.max(1, tile.height * scale)];
    const address = URL.createObjectURL(new Blob([bundle.bytes(tile.png).slice().buffer], { type: "image/png" }));
    const image = html("img", { src: address, alt: "", width: Math.round(width), height: Math.round(height), onload: () => URL.revokeObjectURL(address) });
    const heat = tile.heat ? bundle.numbers(tile.heat) : null;
    const cell = html("div", { class: "cursor", hidden: true });
    const frame = html("div", { class: "picture" }, image, heat && heatCanvas(heat, tile.heat?.shape ?? [1, 1]), marksOf(tile, scale), cell);
    frame.style.width = `${width}px`;
    frame.style.height = `${height}px`;
    const captions = tile.captions.map((caption) => html("p", { class: `caption role-${caption.role}` }, html("bdi", {}, caption.text)));
    const element = html("div", { class: "tile", "data-place": (this.shown ?? []).length }, frame, ...captions);
    element.style.width = `${this.panel.tile_size * PIXELS_PER_INCH}px`;
    this.shown?.push({ element, tile, row, column, heat, cell });
    return element;
  }

  /**
   * @param {Shown} shown
   * @param {number} square
   */
  describe(shown, square) {
    const row = this.rows()[shown.row];
    const name = [row.name && `row '${row.name.replaceAll("\n", " ")}'`, `image ${shown.column + 1}`].filter(Boolean).join(", ");
    if (square >= 0 && shown.heat && shown.tile.heat) {
      const columns = shown.tile.heat.shape[1];
      const place = `square ${Math.floor(square / columns)} down, ${square % columns} across`;
      return `${name}${captionText(shown.tile.captions)}, ${place}: ${formatNumber(shown.heat[square])}`;
    }
    return `${name}${captionText([...shown.tile.captions, ...row.captions])}`;
  }

  moved() {
    const shown = this.shown?.[this.at ?? 0];
    if (!shown) return;
    for (const one of this.shown ?? []) {
      one.element.classList.toggle("at-cursor", one === shown);
      one.cell.hidden = true;
    }
    const square = this.square ?? -1;
    if (square >= 0 && shown.tile.heat) {
      const [rows, columns] = shown.tile.heat.shape;
      shown.cell.hidden = false;
      shown.cell.style.left = `${(100 * (square % columns)) / columns}%`;
      shown.cell.style.top = `${(100 * Math.floor(square / columns)) / rows}%`;
      shown.cell.style.width = `${100 / columns}%`;
      shown.cell.style.height = `${100 / rows}%`;
    }
    this.say(this.describe(shown, square));
  }

  /**
   * @param {KeyboardEvent} event
   */
  onKey(event) {
    const { shown = [], at = 0, square = -1 } = this;
    if (!shown.length || event.ctrlKey || event.altKey || event.metaKey) return;
    const [rows, columns] = shown[at].tile.heat?.shape ?? [0, 0];
    const inside = square >= 0;
    const below = shown.findIndex((one) => one.row > shown[at].row && one.column >= Math.min(shown[at].column, lastColumn(shown, one.row)));
    const above = shown.findLastIndex((one) => one.row < shown[at].row && one.column <= shown[at].column);
    /** @type {Record<string, number>} */
    const moves = inside
      ? { ArrowLeft: square - 1, ArrowRight: square + 1, ArrowUp: square - columns, ArrowDown: square + columns, Home: 0, End: rows * columns - 1 }
      : { ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: above < 0 ? at : above, ArrowDown: below < 0 ? at : below, Home: 0, End: shown.length - 1 };
    if (moves[event.key] !== undefined) {
      const last = inside ? rows * columns - 1 : shown.length - 1;
      const next = Math.max(0, Math.min(last, moves[event.key]));
      if (inside) this.square = next;
      else this.at = next;
    } else if (event.key === "Enter" && shown[at].heat) this.square = inside ? square : 0;
    else if (event.key === "Escape" && inside) this.square = -1;
    else if (event.key === "Escape") {
      this.host?.blur();
      return;
    } else return;
    event.preventDefault();
    this.moved();
    shown[this.at ?? 0].element.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /**
   * @param {PointerEvent} event
   * @param {boolean} chosen
   */
  onPointer(event, chosen) {
    const element = /** @type {Element} */ (event.target).closest(".tile");
    const place = Number(/** @type {HTMLElement | null} */ (element)?.dataset.place ?? NaN);
    const shown = this.shown?.[place];
    if (!shown) return;
    let square = -1;
    if (shown.tile.heat) {
      const box = /** @type {Element} */ (shown.element.querySelector(".picture")).getBoundingClientRect();
      const [rows, columns] = shown.tile.heat.shape;
      const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
      const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
      if (row >= 0 && row < rows && column >= 0 && column < columns) square = row * columns + column;
    }
    if (chosen) {
      [this.at, this.square] = [place, square];
      this.moved();
    } else this.say(this.describe(shown, square), false);
  }
}

/**
 * @param {Shown[]} shown
 * @param {number} row
 */
function lastColumn(shown, row) {
  return Math.max(...shown.filter((one) => one.row === row).map((one) => one.column));
}

/**
 * @param {Caption[]} captions
 */
function captionText(captions) {
  /** @type {Record<string, string>} */
  const meaning = { correct: " (correct)", incorrect: " (incorrect)" };
  const texts = captions.map((one) => `${one.text}${meaning[one.role] ?? ""}`);
  return texts.length ? `: ${texts.join("; ")}` : "";
}

/**
 * Return numbers from 0 to 1 as squares of color.
 * @param {import("./bundle.js").Numbers} heat
 * @param {number[]} shape
 */
function heatCanvas(heat, shape) {
  const canvas = html("canvas", { class: "heat", width: shape[1], height: shape[0], "aria-hidden": "true" });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(shape[1], shape[0]);
  heat.forEach((value, place) => {
    if (!Number.isFinite(value)) return;
    const at = Math.min(1, Math.max(0, value)) * (HEAT_STOPS.length - 1);
    const left = Math.min(HEAT_STOPS.length - 2, Math.floor(at));
    const color = HEAT_STOPS[left].map((from, channel) => Math.round(from + (at - left) * (HEAT_STOPS[left + 1][channel] - from)));
    image.data.set([...color, 255], 4 * place);
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

/**
 * Return the marks over an image.
 * @param {Tile} tile
 * @param {number} scale
 */
function marksOf(tile, scale) {
  if (!tile.marks.length) return null;
  const [width, height] = [tile.width * scale, tile.height * scale];
  const picture = svg("svg", { class: "marks", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" });
  for (const mark of tile.marks) {
    const points = mark.points.map(([down, across]) => [(across + 0.5) * scale, (down + 0.5) * scale]);
    if (!points.length) continue;
    const look = `mark role-${mark.role}${mark.dotted ? " dotted" : ""}${mark.closed ? " closed" : ""}`;
    const path = points.map((point) => point.join(",")).join(" ");
    picture.append(svg(mark.closed ? "polygon" : "polyline", { class: look, points: path }));
    const [x, y] = points[points.length - 1];
    if (mark.end === "arrow" && points.length > 1) picture.append(arrowHead(points[points.length - 2], [x, y], look));
    else if (mark.end === "dot") picture.append(svg("circle", { class: `${look} end`, cx: x, cy: y, r: 3.5 }));
    else if (mark.end) picture.append(svg("text", { class: `${look} sign`, x, y: y + 5, "text-anchor": "middle" }, mark.end === "star" ? "★" : "✕"));
    if (mark.numbered) {
      points.forEach((point, number) => picture.append(svg("text", { class: `${look} number`, x: point[0], y: point[1] + 3, "text-anchor": "middle" }, number + 1)));
    }
  }
  return picture;
}

/**
 * Return the head of an arrow from one point to another.
 * @param {number[]} from
 * @param {number[]} to
 * @param {string} look
 */
export function arrowHead(from, to, look) {
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  const corner = (/** @type {number} */ turn) => `${to[0] - 7 * Math.cos(angle + turn)},${to[1] - 7 * Math.sin(angle + turn)}`;
  return svg("polygon", { class: `${look} end`, points: `${to[0]},${to[1]} ${corner(0.45)} ${corner(-0.45)}` });
}
