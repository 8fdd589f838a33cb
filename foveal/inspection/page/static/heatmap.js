// A map of numbers: rows and columns of colored cells.

import { NumberMap } from "./bundle.js";
import { MapView } from "./map-view.js";
import { formatNumber, positionName } from "./numbers.js";
import { PanelElement } from "./panel-element.js";

/** @typedef {import("./bundle.js").Bundle} Bundle */

export class HeatmapElement extends PanelElement {
  content() {
    const { panel } = this;
    this.map = new NumberMap(/** @type {Bundle} */ (this.bundle), panel.values);
    this.view = new MapView((text, announced) => this.say(text, announced), (axis, position) => this.lead(axis, position));
    const [down, across] = panel.axes;
    const { low, high, diverging, unit, texts, marks } = panel;
    void this.view.show({ map: this.map, axes: [down, across], scale: { low, high, diverging }, unit, texts, marks, prefix: "" });
    return [this.view.element, this.view.legend];
  }

  hasPicture() {
    return true;
  }

  /** @override */
  table() {
    return mapTable(/** @type {NumberMap} */ (this.map), this.panel.axes);
  }

  picture() {
    return canvasPicture(/** @type {MapView} */ (this.view).canvas);
  }

  /**
   * @param {import("./bundle.js").Axis} axis
   * @param {number} position
   */
  follow(axis, position) {
    this.view?.follow(axis, position);
  }
}

/**
 * Return a map as a table: a row for each row.
 * @param {NumberMap} map
 * @param {import("./bundle.js").Axis[]} axes
 * @returns {import("./panel-element.js").TableData}
 */
export function mapTable(map, axes) {
  const [down, across] = axes;
  const names = Array.from({ length: across.count }, (_, place) => positionName(across, place));
  const rows = async (/** @type {number} */ from, /** @type {number} */ to) => {
    if (!across.count) return [];
    const { values } = await map.cells({ top: from, left: 0, rows: to - from, columns: across.count });
    return Array.from({ length: to - from }, (_, row) => [
      positionName(down, from + row),
      ...Array.from(values.subarray(row * across.count, (row + 1) * across.count), formatNumber),
    ]);
  };
  return { columns: [`${down.name} \\ ${across.name}`, ...names], count: down.count, rows };
}

/**
 * Return a canvas as a PNG.
 * @param {HTMLCanvasElement} canvas
 * @returns {Promise<Blob | null>}
 */
export function canvasPicture(canvas) {
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
