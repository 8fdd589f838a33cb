// The page of a run: its views, the input, and another run beside it.

import { html } from "./dom.js";
import { formatNumber } from "./numbers.js";
import { OptionForm } from "./option-form.js";
import { joinCursors, payloadElement } from "./payload-view.js";
import { computeView, fetchProgress, fetchRuns, fetchVersion, fetchViews, ServerEnded } from "./server.js";

/** @typedef {import("./server.js").RunFacts} RunFacts */
/** @typedef {import("./server.js").ViewFacts} ViewFacts */

const POLL = 500; // milliseconds between looks at the progress of a view
const WATCH = 2500; // and at a run that is still training
const TRAINING = "training now";
const OPTION = "option-"; // before the names of options in an address
const MAX_ADDRESS_VALUE = 2000; // letters of an option in an address

class App {
  constructor() {
    /** @type {RunFacts[]} */
    this.runs = [];
    this.run = 0;
    /** @type {number | null} */
    this.beside = null;
    /** @type {ViewFacts[]} */
    this.views = [];
    this.view = "";
    this.request = new AbortController();
    /** @type {Record<number, string>} */
    this.versions = {};
    this.form = new OptionForm(() => void this.showView());
    this.title = html("h1", {});
    this.about = html("p", { class: "about" });
    this.runChoice = html("select", { id: "run", onchange: () => void this.chooseOtherRun(Number(this.runChoice.value)) });
    this.besideChoice = html("select", { id: "beside", onchange: () => void this.chooseBeside(this.besideChoice.value) });
    this.navigation = html("nav", { class: "views", "aria-label": "Views" });
    this.heading = html("h2", { tabindex: -1 });
    this.summary = html("p", { class: "view-summary" });
    this.status = html("p", { class: "status", role: "status" });
    this.columns = html("div", { class: "columns" });
    this.main = html("main", {}, this.heading, this.summary, this.form.element, this.status, this.columns);
  }

  async start() {
    const choosers = html(
      "div",
      { class: "choosers" },
      html("label", { for: "run" }, "Run"),
      this.runChoice,
      html("label", { for: "beside" }, "Beside it"),
      this.besideChoice,
    );
    const head = html("header", { class: "page-head" }, this.title, this.about, choosers);
    document.body.replaceChildren(html("div", { class: "page" }, head, html("div", { class: "with-views" }, this.navigation, this.main)));
    joinCursors(this.columns);
    const { runs, start } = await fetchRuns();
    this.runs = runs;
    const run = this.readPlace(start);
    const isFirst = run === start.run && this.beside === null && [start.early, ""].includes(this.view) && !this.form.hasRestored();
    await this.chooseRun(run, isFirst ? start.early : null);
    addEventListener("popstate", () => void this.chooseRun(this.readPlace(start)));
    setInterval(() => void this.watch(), WATCH);
  }

  /**
   * Take the choice of the address. Return the run.
   * @param {{run: number, view: string | null, beside: number | null}} start What is shown without a choice.
   * @returns {number}
   */
  readPlace(start) {
    const place = new URLSearchParams(location.hash.slice(1));
    const number = (/** @type {string} */ name, /** @type {number | null} */ other) => {
      const value = place.get(name);
      return value !== null && Number(value) < this.runs.length ? Number(value) : other;
    };
    this.beside = number("beside", place.has("run") ? null : start.beside);
    this.view = place.get("view") ?? start.view ?? "";
    const options = [...place].filter(([name]) => name.startsWith(OPTION));
    this.form.restore(Object.fromEntries(options.map(([name, value]) => [name.slice(OPTION.length), value])));
    this.form.control.checked = place.has("control");
    return number("run", start.run) ?? 0;
  }

  /**
   * Show another run. What was typed is an input of the run before.
   * @param {number} run
   */
  async chooseOtherRun(run) {
    this.form.restore({});
    await this.chooseRun(run);
  }

  /**
   * @param {number} run
   * @param {string | null} early A view that is there long before the list of views.
   */
  async chooseRun(run, early = null) {
    this.run = run;
    if (this.beside === run) this.beside = null;
    this.writeHead();
    this.navigation.replaceChildren(html("p", { class: "note" }, "opening the run ..."));
    if (early !== null) await this.chooseView(early, false);
    try {
      const { views, others, first } = await fetchViews(run);
      if (this.run !== run) return; // another run was chosen meanwhile
      this.views = views;
      this.writeViews(others);
      const chosen = [this.view, first].map((name) => views.find((one) => one.name === name)).find(Boolean);
      if (!chosen) this.fail(this.columns, "no view fits this run");
      else if (chosen.name === early) this.writeView(early);
      else await this.chooseView(chosen.name, false);
    } catch (error) {
      if (this.run !== run) return;
      this.navigation.replaceChildren();
      if (early === null) this.columns.replaceChildren();
      this.fail(this.columns, error);
    }
  }

  /**
   * @param {string} value
   */
  async chooseBeside(value) {
    this.beside = value === "" ? null : Number(value);
    this.writeHead();
    await this.showView();
  }

  /**
   * @param {string} name
   * @param {boolean} focus
   */
  async chooseView(name, focus) {
    this.writeView(name);
    if (focus) this.heading.focus();
    await this.showView();
  }

  /**
   * Write the name, the summary and the options of a view.
   * @param {string} name
   */
  writeView(name) {
    this.view = name;
    const view = this.views.find((one) => one.name === name);
    this.heading.textContent = name;
    this.summary.textContent = view?.summary ?? "";
    this.form.show(view?.fields ?? [], view?.has_control ?? false);
    this.markView();
  }

  /** Mark the button of the chosen view. */
  markView() {
    for (const button of this.navigation.querySelectorAll("button.view")) {
      button.setAttribute("aria-current", String(/** @type {HTMLElement} */ (button).dataset.view === this.view));
    }
  }

  /** Compute the chosen view of each run, one after another. */
  async showView() {
    this.request.abort();
    const request = new AbortController();
    this.request = request;
    this.keepPlace();
    const runs = this.beside === null ? [this.run] : [this.run, this.beside];
    const columns = runs.map((run) => {
      const name = runs.length > 1 ? html("h3", { class: "run-name" }, html("bdi", {}, this.runs[run].name)) : null;
      return html("section", { "aria-label": this.runs[run].name }, name);
    });
    this.columns.classList.toggle("two", runs.length > 1);
    this.columns.setAttribute("aria-busy", "true");
    const before = [...this.columns.children];
    const subject = [...runs, this.view].join(" ");
    // The same view of the same runs stays until the new one is there.
    if (before.length !== columns.length || this.columns.dataset.subject !== subject) this.columns.replaceChildren(...columns);
    this.columns.dataset.subject = subject;
    this.status.textContent = "computing ...";
    let ended = "";
    const timer = setInterval(() => void this.writeProgress(request), POLL);
    for (const [place, run] of runs.entries()) {
      try {
        this.versions[run] = await fetchVersion(run);
        const { bundle, notes } = await computeView(run, this.view, this.form.chosen(), this.form.control.checked, request.signal);
        if (request.signal.aborted) break;
        const title = html("p", { class: "payload-title" }, html("bdi", {}, bundle.header.title));
        columns[place].append(...notes.map((note) => html("p", { class: "note" }, note)), title, payloadElement(bundle));
        this.columns.children[place].replaceWith(columns[place]);
      } catch (error) {
        if (request.signal.aborted) break;
        if (error instanceof ServerEnded && this.columns.children[place].querySelector(".payload")) {
          ended = error.message; // the last picture of a training stays
          continue;
        }
        this.fail(columns[place], error);
        this.columns.children[place].replaceWith(columns[place]);
      }
    }
    clearInterval(timer);
    if (request.signal.aborted) return;
    this.columns.setAttribute("aria-busy", "false");
    this.status.textContent = ended;
  }

  /**
   * @param {AbortController} request
   */
  async writeProgress(request) {
    const { running, done, total, noun } = await fetchProgress();
    if (request.signal.aborted || this.columns.getAttribute("aria-busy") !== "true") return;
    this.status.textContent = running && total ? `${noun} ${formatNumber(done ?? 0)} of ${formatNumber(total)}` : "computing ...";
  }

  /** Show the view again if a run has gone on since. */
  async watch() {
    const shown = this.beside === null ? [this.run] : [this.run, this.beside];
    if (document.hidden || this.columns.getAttribute("aria-busy") === "true") return;
    if (!shown.some((run) => this.runs[run]?.state === TRAINING)) return;
    try {
      const versions = await Promise.all(shown.map(fetchVersion));
      if (versions.every((version, place) => version === this.versions[shown[place]])) return;
      this.runs = (await fetchRuns()).runs;
      this.writeHead();
      await this.refreshViews();
      const view = this.views.find((one) => one.name === this.view);
      if (!view) await this.chooseRun(this.run);
      else if (view.has_control) this.status.textContent = "The run has gone on since; Show computes this view again.";
      else await this.showView();
    } catch (error) {
      this.status.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  /** Write the list of views anew if others fit the run now, such as its first histograms. */
  async refreshViews() {
    if (!this.views.length) return;
    const { views, others } = await fetchViews(this.run);
    const names = (/** @type {ViewFacts[]} */ list) => list.map((one) => one.name).join(" ");
    if (names(views) === names(this.views)) return;
    this.views = views;
    this.writeViews(others);
  }

  /** Write the name and facts of the run, and the choice of runs. */
  writeHead() {
    const run = this.runs[this.run];
    document.title = `${run.name} - Foveal`;
    this.title.replaceChildren(html("bdi", {}, run.name));
    const score = run.score === null ? null : `${run.score_name} ${formatNumber(run.score)} (${run.score_split})`;
    this.about.textContent = [run.model, fileNames(run.data), score, run.state].filter(Boolean).join(" · ");
    const options = (/** @type {number | null} */ chosen) =>
      this.runs.map((one) => html("option", { value: one.id, selected: one.id === chosen }, one.name));
    this.runChoice.replaceChildren(...options(this.run));
    const others = options(this.beside).filter((_, place) => place !== this.run);
    this.besideChoice.replaceChildren(html("option", { value: "" }, "no other"), ...others);
  }

  /**
   * @param {Record<string, string>} others
   */
  writeViews(others) {
    const items = this.views.map((one) => {
      const button = html("button", { type: "button", class: "view", "data-view": one.name, title: one.summary }, one.name);
      button.addEventListener("click", () => void this.chooseView(one.name, true));
      return html("li", {}, button);
    });
    const reasons = Object.entries(others).map(([name, why]) => html("li", {}, `${name}: ${why}`));
    const rest = html("details", {}, html("summary", {}, "Views that do not fit"), html("ul", {}, ...reasons));
    this.navigation.replaceChildren(html("ul", {}, ...items), ...(reasons.length ? [rest] : []));
    this.markView();
  }

  /** Keep the choice in the address, where the browser's buttons and the next load find it. */
  keepPlace() {
    const place = new URLSearchParams({ run: String(this.run), view: this.view });
    if (this.beside !== null) place.set("beside", String(this.beside));
    for (const [name, value] of Object.entries(this.form.chosen())) {
      if (!value.startsWith("upload:") && value.length <= MAX_ADDRESS_VALUE) place.set(OPTION + name, value);
    }
    if (this.form.control.checked) place.set("control", "1");
    if (location.hash === `#${place}`) return;
    if (location.hash === "") history.replaceState(null, "", `#${place}`);
    else history.pushState(null, "", `#${place}`);
  }

  /**
   * @param {HTMLElement} where
   * @param {unknown} error
   */
  fail(where, error) {
    where.append(html("p", { class: "error", role: "alert" }, error instanceof Error ? error.message : String(error)));
  }
}

new App().start().catch((error) => {
  document.body.append(html("p", { class: "error", role: "alert" }, error instanceof Error ? error.message : String(error)));
});

/** Return the names of data files without their folders.
 * @param {string | null} data
 * @returns {string} */
function fileNames(data) {
  return (data ?? "").split(",").map((path) => path.split(/[\\/]/).pop()).join(", ");
}
