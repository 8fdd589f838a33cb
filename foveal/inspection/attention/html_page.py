"""Attention between words as an HTML file: a table for each example, with cells colored by weight.

The page loads nothing from the network. Without JavaScript, the page shows a single head or the mean, with
numbers as tooltips. With JavaScript, the page shows any head, highlights the words under the pointer, and
reacts to the arrow keys. Text is escaped. A content security policy allows only the page's own script, by its
hash.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape

import numpy as np
from jaxtyping import Float

from foveal.inspection.attention.words import WordAttention

STYLE = """
:root { --ink: 11 42 91; --paper: #fff; --text: #1f2933; --faint: #dfe4ea; --on: #ffd98a;
  color-scheme: light dark }
@media (prefers-color-scheme: dark) {
  :root { --ink: 147 197 253; --paper: #14181d; --text: #e4e7eb; --faint: #323a43; --on: #7a5200 }
}
body { margin: 1.5rem; background: var(--paper); color: var(--text); font: 15px/1.45 system-ui, sans-serif }
p, figcaption { max-width: 60rem }
figure { margin: 2.5rem 0 0 }
figure div { margin: .3rem 0 }
.shade { display: inline-block; width: 8rem; height: .8rem; border: 1px solid var(--faint);
  background: linear-gradient(to right, rgb(var(--ink) / 0), rgb(var(--ink) / 1)) }
output { display: block; min-height: 1.5em; position: sticky; top: 0; z-index: 3; background: var(--paper) }
.scroll { overflow: auto; width: fit-content; max-width: 100%; max-height: 90vh }
table { border-spacing: 1px; font-size: 13px; line-height: 1.3 }
th { position: sticky; z-index: 1; padding: 0 5px; background: var(--paper);
  font-weight: normal; white-space: nowrap }
th bdi { display: inline-block; max-width: 16rem; max-height: 16rem;
  overflow: hidden; text-overflow: ellipsis }
thead th { top: 0; padding: 5px 0; vertical-align: bottom }
thead bdi { writing-mode: vertical-rl; text-orientation: sideways; transform: rotate(180deg) }
thead td { position: sticky; left: 0; top: 0; z-index: 2; background: var(--paper) }
tbody th { left: 0; text-align: right }
tbody td { width: 20px; min-width: 20px; height: 20px; padding: 0; font-size: 0;
  outline: 1px solid var(--faint); background: rgb(var(--ink) / var(--w)) }
tbody td:hover, tbody td:focus { position: relative; outline: 3px solid #d97706 }
tbody tr:hover th, th.on { background: var(--on) }
"""

SCRIPT = """
"use strict";
for (const figure of document.querySelectorAll("figure")) {
  const find = name => figure.querySelector(name);
  const views = JSON.parse(find("script").textContent);
  const cells = [...figure.querySelectorAll("tbody tr")].map(row => [...row.querySelectorAll("td")]);
  const sources = [...figure.querySelectorAll("thead th")];
  const targets = [...figure.querySelectorAll("tbody th")];
  const choice = find("select"), body = find("tbody");
  let here = cells[0][0];
  const place = cell => [cell.parentElement.sectionRowIndex, cell.cellIndex - 1];
  const sentence = (t, s) =>
    `${targets[t].textContent} reads ${sources[s].textContent}: ${cells[t][s].textContent}`;

  function show() {
    const view = views[choice.selectedIndex], most = Math.max(...view.map(row => Math.max(...row)));
    find(".most").textContent = most.toFixed(3);
    find(".name").textContent = choice.value;
    view.forEach((row, t) => row.forEach((weight, s) => {
      cells[t][s].textContent = weight.toFixed(3);
      cells[t][s].style.setProperty("--w", weight / (most || 1));
      cells[t][s].title = sentence(t, s);
    }));
  }

  function point(cell) {
    const [t, s] = place(cell);
    sources.forEach((word, i) => word.classList.toggle("on", i === s));
    targets.forEach((word, i) => word.classList.toggle("on", i === t));
    find("output").textContent = sentence(t, s);
  }

  body.addEventListener("pointerover", event => {
    const cell = event.target.closest("td");
    if (cell) point(cell);
  });
  body.addEventListener("focusin", event => {
    here.tabIndex = -1;
    here = event.target;
    here.tabIndex = 0;
    point(here);
  });
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -Infinity], End: [0, Infinity] };
  const within = (i, list) => list[Math.min(Math.max(i, 0), list.length - 1)];
  body.addEventListener("keydown", event => {
    const step = steps[event.key], [t, s] = place(here);
    if (!step) return;
    event.preventDefault();
    within(s + step[1], within(t + step[0], cells)).focus();
  });
  choice.addEventListener("change", show);
  find("label").hidden = views.length < 2;
  find("table").setAttribute("role", "grid");
  find(".scroll").removeAttribute("tabindex");
  cells.flat().forEach(cell => { cell.tabIndex = -1; });
  here.tabIndex = 0;
}
"""


def attention_html(examples: Sequence[WordAttention], head: str | None) -> bytes:
    """Return the content of the file. `head` is shown first, by default the mean of all heads."""
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    figures = "".join(_figure(number, example, head) for number, example in enumerate(examples, 1))
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>Alignment</title>
<style>{STYLE}</style>
<h1>Alignment</h1>
<p>Each row is a word of the target, each column a word of the source. The darker a cell, the more the model
read of the source word when it wrote the target word. Weights show where the model read, not why it chose the
word (Jain and Wallace 2019).</p>
{figures}
<script>{SCRIPT}</script>
</html>
""".encode()


def _figure(number: int, example: WordAttention, head: str | None) -> str:
    heads = len(example.heads)
    views = {f"mean of {heads} heads": example.head_weights(None)} if heads > 1 else {}
    views |= {f"head {name}": example.head_weights(name) for name in example.heads}
    name = next(iter(views)) if head is None else f"head {head}"
    largest = float(views[name].max())
    options = "".join(f"<option{' selected' if other == name else ''}>{other}</option>" for other in views)
    columns = "".join(f'<th scope="col"><bdi>{escape(word)}</bdi></th>' for word in example.source)
    rows = "\n".join(
        _row(word, example.source, weights, largest)
        for word, weights in zip(example.target, views[name], strict=True)
    )
    numbers = json.dumps([view.round(4).tolist() for view in views.values()], separators=(",", ":"))
    return f"""<figure>
<figcaption><b>{number}.</b> <bdi>{escape(" ".join(example.source))}</bdi><br>
<bdi>{escape(" ".join(example.target))}</bdi></figcaption>
<div>0 <span class="shade"></span> <span class="most">{largest:.3f}</span>, <span class="name">{name}</span>
<label hidden>show <select autocomplete="off">{options}</select></label></div>
<output></output>
<div class="scroll" tabindex="0" role="region" aria-label="weights of example {number}"><table>
<thead><tr><td></td>{columns}</tr></thead>
<tbody>
{rows}
</tbody>
</table></div>
<script type="application/json">{numbers}</script>
</figure>
"""


def _row(word: str, source: Sequence[str], weights: Float[np.ndarray, " S"], largest: float) -> str:
    """Return the table row of a target word. The cell with the weight `largest` is darkest."""
    cells = (
        f'<td style="--w:{weight / (largest or 1):.3f}" '
        f'title="{escape(f"{word} reads {source_word}: {weight:.3f}")}">{weight:.3f}</td>'
        for source_word, weight in zip(source, weights.tolist(), strict=True)
    )
    return f'<tr><th scope="row"><bdi>{escape(word)}</bdi></th>{"".join(cells)}</tr>'
