// A table of texts.

import { PanelElement } from "./panel-element.js";

export class TextTableElement extends PanelElement {
  content() {
    this.tableHost.hidden = false;
    void this.fillTable(0, 0);
    return [];
  }

  hasTable() {
    return false; // it is one
  }

  table() {
    /** @type {{columns: string[], rows: string[][]}} */
    const { columns, rows } = /** @type {any} */ (this.panel);
    return { columns, count: rows.length, rows: async (/** @type {number} */ from, /** @type {number} */ to) => rows.slice(from, to) };
  }
}
