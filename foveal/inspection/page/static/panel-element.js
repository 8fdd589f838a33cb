// What every kind of panel has: title, sentence, the value at the cursor, its table, and downloads.

import { download, html } from "./dom.js";
import { isNumber } from "./numbers.js";

/** @typedef {import("./bundle.js").Bundle} Bundle */
/** @typedef {import("./bundle.js").Panel} Panel */
/** @typedef {{columns: string[], count: number, rows: (from: number, to: number) => Promise<string[][]>}} TableData */

const ROWS_SHOWN = 50;
const COLUMNS_SHOWN = 40;
const PAUSE = 150; // milliseconds without a key after which the value is announced
const CSV_ROWS = 256;
const LONG_TEXT = 50; // letters from which a cell has several lines

export class PanelElement extends HTMLElement {
  constructor() {
    super();
    /** @type {Panel} */
    this.panel = { kind: "", title: "", sentence: "" };
    /** @type {Bundle | null} */
    this.bundle = null;
    this.readout = html("p", { class: "readout", "aria-hidden": "true" });
    this.live = html("p", { class: "unseen", role: "status", "aria-live": "polite" });
    this.timer = 0;
    this.plot = html("div", { class: "plot" });
    this.tableHost = html("div", { class: "table-host", hidden: true });
    this.tableButton = html(
      "button",
      { type: "button", "aria-pressed": "false", title: "Show the numbers as a table (T)", onclick: () => void this.toggleTable() },
      "Table",
    );
    this.addEventListener("keydown", (event) => this.onPanelKey(event));
  }

  /**
   * Show a panel of a payload.
   * @param {Panel} panel
   * @param {Bundle} bundle
   */
  show(panel, bundle) {
    this.panel = panel;
    this.bundle = bundle;
    const name = panel.title || panel.sentence;
    const saves = [
      this.button("CSV", `Save the table of ${name} as CSV`, () => this.saveCsv()),
      this.button("JSON", `Save the table of ${name} as JSON`, () => this.saveJson()),
    ];
    if (this.hasPicture()) saves.push(this.button("PNG", `Save the picture of ${name} as PNG`, () => this.savePicture()));
    const head = html("div", { class: "panel-head" }, panel.title !== "" && html("h3", {}, panel.title), this.tools(saves));
    const caption = html("figcaption", {}, panel.sentence);
    this.plot.replaceChildren(...this.content());
    this.replaceChildren(
      html("figure", { class: `panel panel-${panel.kind}` }, head, this.plot, this.tableHost, this.readout, this.live, caption),
    );
  }

  /**
   * @param {HTMLElement[]} saves
   */
  tools(saves) {
    return html("div", { class: "tools", role: "group", "aria-label": "Table and files" }, this.hasTable() && this.tableButton, ...saves);
  }

  /**
   * @param {string} text
   * @param {string} label
   * @param {() => void} onclick
   */
  button(text, label, onclick) {
    return html("button", { type: "button", "aria-label": label, title: label, onclick }, text);
  }

  /**
   * Return the elements of the picture.
   * @returns {Node[]}
   */
  content() {
    return [];
  }

  /** Return whether the numbers can be shown as a table instead. */
  hasTable() {
    return true;
  }

  /** Return whether the picture can be saved. */
  hasPicture() {
    return false;
  }

  /**
   * Return the numbers as a table.
   * @returns {TableData}
   */
  table() {
    return { columns: [], count: 0, rows: async () => [] };
  }

  /**
   * Return the picture as a PNG.
   * @returns {Promise<Blob | null>}
   */
  async picture() {
    return null;
  }

  /**
   * Move the cursor to a position of an axis that another panel has, too.
   * @param {import("./bundle.js").Axis} axis
   * @param {number} position
   */
  follow(axis, position) {
    void axis;
    void position;
  }

  /**
   * Write the value under the pointer or at the cursor; announce that at the cursor.
   * @param {string} text
   * @param {boolean} announced
   */
  say(text, announced = true) {
    this.readout.textContent = text;
    if (!announced) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.live.textContent = text;
    }, PAUSE);
  }

  /**
   * Let the other panels follow to a position.
   * @param {import("./bundle.js").Axis} axis
   * @param {number} position
   */
  lead(axis, position) {
    this.dispatchEvent(new CustomEvent("foveal-point", { bubbles: true, detail: { axis, position } }));
  }

  /**
   * @param {KeyboardEvent} event
   */
  onPanelKey(event) {
    const target = /** @type {Element} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, textarea")) return;
    if (event.key.toLowerCase() === "t" && this.hasTable()) {
      event.preventDefault();
      void this.toggleTable().then(() => this.focusShown());
    }
  }

  /** Move the focus into what is shown: picture or table. */
  focusShown() {
    /** @type {HTMLElement | null} */ ((this.tableHost.hidden ? this.plot : this.tableHost).querySelector("[tabindex]"))?.focus();
  }

  async toggleTable() {
    const shown = this.tableHost.hidden;
    this.tableHost.hidden = !shown;
    this.plot.hidden = shown;
    this.tableButton.setAttribute("aria-pressed", String(shown));
    if (shown) await this.fillTable(0, 0);
  }

  /**
   * Write a page of the table.
   * @param {number} top
   * @param {number} left
   */
  async fillTable(top, left) {
    const data = this.table();
    const rows = await data.rows(top, Math.min(data.count, top + ROWS_SHOWN));
    const wide = data.columns.length > COLUMNS_SHOWN;
    const picked = [...data.columns.keys()].filter((place) => !wide || place === 0 || (place > left && place < left + COLUMNS_SHOWN));
    const looks = data.columns.map((_, place) => (areNumbers(rows.map((row) => row[place])) ? "number" : null));
    const head = html(
      "tr",
      {},
      ...picked.map((place) => html("th", { scope: "col", class: looks[place] }, html("bdi", {}, data.columns[place]))),
    );
    const lines = rows.map((row) =>
      html("tr", {}, ...picked.map((place) => tableCell(row[place], place === 0, looks[place]))),
    );
    const label = `Table: ${this.panel.title || this.panel.sentence}`;
    const scroller = html(
      "div",
      { class: "table-scroll", tabindex: 0, role: "region", "aria-label": label },
      html("table", {}, html("thead", {}, head), html("tbody", {}, ...lines)),
    );
    const pager = html("div", { class: "pager" });
    if (data.count > ROWS_SHOWN) {
      pager.append(...this.pages("rows", top, ROWS_SHOWN, data.count, (start) => this.fillTable(start, left)));
    }
    if (wide) {
      const step = COLUMNS_SHOWN - 1;
      pager.append(...this.pages("columns", left, step, data.columns.length - 1, (start) => this.fillTable(top, start)));
    }
    this.tableHost.replaceChildren(scroller, pager);
  }

  /**
   * @param {string} noun
   * @param {number} start
   * @param {number} step
   * @param {number} count
   * @param {(start: number) => void} go
   */
  pages(noun, start, step, count, go) {
    const end = Math.min(count, start + step);
    return [
      html("button", { type: "button", disabled: start === 0, onclick: () => go(Math.max(0, start - step)) }, `Previous ${noun}`),
      html("span", {}, `${noun} ${start + 1} to ${end} of ${count.toLocaleString("en-US")}`),
      html("button", { type: "button", disabled: end >= count, onclick: () => go(start + step) }, `Next ${noun}`),
    ];
  }

  fileName() {
    const name = `${this.bundle?.header.view ?? ""} ${this.panel.title}`.trim();
    return name.replaceAll(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60) || "panel";
  }

  async saveCsv() {
    const data = this.table();
    const parts = [csvLine(data.columns)];
    for (let from = 0; from < data.count; from += CSV_ROWS) {
      const rows = await data.rows(from, Math.min(data.count, from + CSV_ROWS));
      parts.push(...rows.map(csvLine));
    }
    download(`${this.fileName()}.csv`, new Blob(parts, { type: "text/csv" }));
  }

  async saveJson() {
    const data = this.table();
    const rows = await data.rows(0, data.count);
    const about = { title: this.panel.title, sentence: this.panel.sentence, columns: data.columns, rows };
    download(`${this.fileName()}.json`, new Blob([JSON.stringify(about)], { type: "application/json" }));
  }

  async savePicture() {
    const content = await this.picture();
    if (content) download(`${this.fileName()}.png`, content);
  }
}

/**
 * Return whether all cells of a column that are not empty are numbers. Such a column ends at the right.
 * @param {string[]} cells
 * @returns {boolean}
 */
function areNumbers(cells) {
  const filled = cells.filter((cell) => cell !== "");
  return filled.length > 0 && filled.every(isNumber);
}

/**
 * @param {string} text
 * @param {boolean} isFirst
 * @param {string | null} columnLook
 * @returns {HTMLElement}
 */
function tableCell(text, isFirst, columnLook) {
  const look = text.length > LONG_TEXT || text.includes("\n") ? "long" : columnLook;
  const names = isFirst && text !== ""; // a heading without text says nothing
  return names ? html("th", { scope: "row", class: look }, html("bdi", {}, text)) : html("td", { class: look }, html("bdi", {}, text));
}

/**
 * @param {string[]} cells
 * @returns {string}
 */
function csvLine(cells) {
  return `${cells.map((cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(",")}\r\n`;
}
