// A payload on the page: facts, panels, and what the numbers do not say.

import { BarsElement } from "./bars.js";
import { Bundle } from "./bundle.js";
import { ColoredTextElement } from "./colored-text.js";
import { custom, html } from "./dom.js";
import { GraphElement } from "./graph.js";
import { HeatmapElement } from "./heatmap.js";
import { HeatmapGridElement } from "./heatmap-grid.js";
import { HistogramsElement } from "./histograms.js";
import { ImagesElement } from "./images.js";
import { LinesElement } from "./lines.js";
import { PanelElement } from "./panel-element.js";
import { TextTableElement } from "./text-table.js";

const EXACTNESS = /** @type {Record<string, string>} */ ({
  exact: "exact numbers",
  recomputed: "recomputed numbers",
  approximated: "approximated numbers",
});

const SMALL_INCHES = 5;
const SMALL_COUNT = 24;

const ELEMENTS = {
  heatmap: HeatmapElement,
  "heatmap-grid": HeatmapGridElement,
  lines: LinesElement,
  histograms: HistogramsElement,
  bars: BarsElement,
  "colored-text": ColoredTextElement,
  images: ImagesElement,
  graph: GraphElement,
  table: TextTableElement,
};

for (const [kind, element] of Object.entries(ELEMENTS)) customElements.define(`foveal-${kind}`, element);

/**
 * Return a payload as an element. Panels over the same positions follow each other's cursor.
 * @param {Bundle} bundle
 * @returns {HTMLElement}
 */
export function payloadElement(bundle) {
  const { facts, exactness, caveat, panels } = bundle.header;
  const shown = panels.map((panel) => {
    const element = custom(`foveal-${panel.kind}`);
    element.show(panel, bundle);
    element.classList.toggle("small", isSmall(panel));
    return /** @type {PanelElement} */ (element);
  });
  const names = facts.map(([name, value]) => html("div", {}, html("dt", {}, name), html("dd", {}, html("bdi", {}, value))));
  return html(
    "div",
    { class: "payload" },
    names.length > 0 && html("dl", { class: "facts" }, ...names),
    html("div", { class: "panels" }, ...shown),
    html("p", { class: "caveat" }, html("span", { class: "exactness" }, EXACTNESS[exactness] ?? exactness), ` ${caveat}`),
  );
}

/**
 * Return whether a panel leaves room for another beside it.
 * @param {import("./bundle.js").Panel} panel
 * @returns {boolean}
 */
function isSmall(panel) {
  if (panel.kind === "lines") return panel.size[0] < SMALL_INCHES;
  return panel.kind === "bars" && panel.axes[1].count <= SMALL_COUNT;
}

/**
 * Let the panels inside an element follow each other's cursor.
 * @param {HTMLElement} root
 */
export function joinCursors(root) {
  root.addEventListener("foveal-point", (event) => {
    const { axis, position } = /** @type {CustomEvent} */ (event).detail;
    for (const kind of Object.keys(ELEMENTS)) {
      for (const panel of root.querySelectorAll(`foveal-${kind}`)) {
        if (panel !== event.target) /** @type {PanelElement} */ (panel).follow(axis, position);
      }
    }
  });
}
