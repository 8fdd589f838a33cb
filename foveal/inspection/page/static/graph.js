// Boxes joined by arrows.

import { svgPicture } from "./chart.js";
import { html, svg } from "./dom.js";
import { arrowHead } from "./images.js";
import { shorten } from "./numbers.js";
import { PanelElement } from "./panel-element.js";

/** @typedef {{name: string, lines: string[], place: [number, number], role: string, shape: string}} GraphNode */
/** @typedef {{source: string, target: string, text: string, role: string, bend: number}} GraphEdge */

const LETTER_WIDTH = 7;
const LINE_TALL = 16;
const SPACING = { column: 34, row: 30, edge: 10 };
const MAX_LETTERS = 34;

export class GraphElement extends PanelElement {
  content() {
    /** @type {number} */
    this.at = 0;
    /** @type {SVGElement[]} */
    this.boxes = [];
    this.host = html(
      "div",
      {
        class: "graph",
        tabindex: 0,
        role: "application",
        "aria-roledescription": "graph",
        "aria-label": `${this.panel.sentence}. Arrow keys move from node to node.`,
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event),
        onfocus: () => this.moved(),
      },
      this.drawn(),
    );
    return [this.host];
  }

  /** @returns {GraphNode[]} */
  nodes() {
    return this.panel.nodes;
  }

  /** @returns {GraphEdge[]} */
  edges() {
    return this.panel.edges;
  }

  hasPicture() {
    return true;
  }

  async picture() {
    const picture = this.host?.querySelector("svg");
    return picture ? svgPicture(picture) : null;
  }

  table() {
    const cells = this.nodes().map((node) => [
      node.name,
      node.lines.join("; "),
      this.edges().filter((edge) => edge.target === node.name).map((edge) => edge.source).join("; "),
      this.edges().filter((edge) => edge.source === node.name).map((edge) => `${edge.target}${edge.text ? ` (${edge.text})` : ""}`).join("; "),
    ]);
    return {
      columns: ["node", "text", "from", "to"],
      count: cells.length,
      rows: async (/** @type {number} */ from, /** @type {number} */ to) => cells.slice(from, to),
    };
  }

  drawn() {
    const nodes = this.nodes();
    const letters = Math.min(MAX_LETTERS, Math.max(1, ...nodes.flatMap((node) => node.lines.map((line) => line.length))));
    const lines = Math.max(1, ...nodes.map((node) => node.lines.length));
    const box = { width: letters * LETTER_WIDTH + 18, height: lines * LINE_TALL + 12 };
    const cell = { width: box.width + SPACING.column, height: box.height + SPACING.row };
    const middle = (/** @type {GraphNode} */ node) => [
      SPACING.edge + node.place[0] * cell.width + box.width / 2,
      SPACING.edge + node.place[1] * cell.height + box.height / 2,
    ];
    const places = new Map(nodes.map((node) => [node.name, middle(node)]));
    const width = 2 * SPACING.edge + box.width + cell.width * Math.max(0, ...nodes.map((node) => node.place[0]));
    const height = 2 * SPACING.edge + box.height + cell.height * Math.max(0, ...nodes.map((node) => node.place[1]));
    const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", focusable: "false" });
    for (const edge of this.edges()) {
      const [from, to] = [places.get(edge.source) ?? [0, 0], places.get(edge.target) ?? [0, 0]];
      const points = edge.bend ? bent(from, to, box, edge.bend * cell.width) : [rim(from, to, box), rim(to, from, box)];
      const [start, end] = points.slice(-2);
      const look = `edge role-${edge.role}`;
      picture.append(svg("polyline", { class: look, points: points.join(" ") }), arrowHead(start, end, look));
      const place = { class: `edge-text role-${edge.role}`, x: (start[0] + end[0]) / 2, y: (start[1] + end[1]) / 2 + 4, "text-anchor": "middle" };
      if (edge.text) picture.append(svg("text", place, shorten(edge.text, MAX_LETTERS)));
    }
    nodes.forEach((node, number) => picture.append(this.drawNode(node, number, middle(node), box)));
    return picture;
  }

  /**
   * @param {GraphNode} node
   * @param {number} number
   * @param {number[]} middle
   * @param {{width: number, height: number}} box
   */
  drawNode(node, number, middle, box) {
    const corner = { x: middle[0] - box.width / 2, y: middle[1] - box.height / 2, ...box, rx: 5 };
    const group = svg("g", {
      class: `node role-${node.role} ${this.panel.shape}`,
      onpointerenter: () => this.say(this.describe(number), false),
      onclick: () => {
        this.at = number;
        this.moved();
      },
    });
    const radius = Math.min(box.height, box.width) / 2;
    group.append(node.shape === "circle" ? svg("circle", { cx: middle[0], cy: middle[1], r: radius }) : svg("rect", corner));
    const first = middle[1] - ((node.lines.length - 1) * LINE_TALL) / 2 + 4;
    node.lines.forEach((line, place) => {
      group.append(svg("text", { x: middle[0], y: first + place * LINE_TALL, "text-anchor": "middle" }, shorten(line, MAX_LETTERS)));
    });
    this.boxes?.push(group);
    return group;
  }

  /**
   * @param {number} number
   */
  describe(number) {
    const node = this.nodes()[number];
    const from = this.edges().filter((edge) => edge.target === node.name).length;
    const to = this.edges().filter((edge) => edge.source === node.name).length;
    return `${node.lines.join(", ") || node.name}: ${from} in, ${to} out`;
  }

  moved() {
    const { at = 0, boxes = [] } = this;
    if (!boxes.length) return;
    boxes.forEach((box, number) => box.classList.toggle("at-cursor", number === at));
    this.say(this.describe(at));
    boxes[at].scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /**
   * @param {KeyboardEvent} event
   */
  onKey(event) {
    const { at = 0 } = this;
    const nodes = this.nodes();
    if (!nodes.length || event.ctrlKey || event.altKey || event.metaKey) return;
    /** @type {Record<string, [number, number]>} */
    const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (directions[event.key]) this.at = nearestNode(nodes, at, directions[event.key]);
    else if (event.key === "Home" || event.key === "PageUp") this.at = 0;
    else if (event.key === "End" || event.key === "PageDown") this.at = nodes.length - 1;
    else if (event.key === "Escape") {
      this.host?.blur();
      return;
    } else return;
    event.preventDefault();
    this.moved();
  }
}

/**
 * Return where the line from the middle of a box to a point leaves the box.
 * @param {number[]} middle
 * @param {number[]} to
 * @param {{width: number, height: number}} box
 */
function rim(middle, to, box) {
  const [x, y] = [to[0] - middle[0], to[1] - middle[1]];
  const share = Math.min(box.width / 2 / (Math.abs(x) || 1e-9), box.height / 2 / (Math.abs(y) || 1e-9), 1);
  return [middle[0] + x * share, middle[1] + y * share];
}

/**
 * Return the points of an arrow that goes to the right, turns up or down, and comes back to its target.
 * @param {number[]} from
 * @param {number[]} to
 * @param {{width: number, height: number}} box
 * @param {number} reach
 */
function bent(from, to, box, reach) {
  const turn = from[0] + reach;
  const end = to[0] + (Math.sign(turn - to[0]) * box.width) / 2;
  return [[from[0] + box.width / 2, from[1]], [turn, from[1]], [turn, to[1]], [end, to[1]]];
}

/**
 * Return the nearest node in a direction; the same if there is none.
 * @param {GraphNode[]} nodes
 * @param {number} at
 * @param {[number, number]} direction
 */
function nearestNode(nodes, at, direction) {
  const [x, y] = nodes[at].place;
  let best = { cost: Infinity, number: at };
  nodes.forEach((node, number) => {
    const [right, down] = [node.place[0] - x, node.place[1] - y];
    const ahead = right * direction[0] + down * direction[1];
    if (ahead <= 0) return;
    const cost = ahead + 2 * Math.abs(right * direction[1] + down * direction[0]);
    if (cost < best.cost) best = { cost, number };
  });
  return best.number;
}
