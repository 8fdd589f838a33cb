// The report: payloads that are stored in the page itself.

import { Bundle } from "./bundle.js";
import { html } from "./dom.js";
import { joinCursors, payloadElement } from "./payload-view.js";

/**
 * Return the bytes that a script element holds, packed with gzip and written in base64.
 * @param {string} id
 * @returns {Promise<ArrayBuffer>}
 */
async function stored(id) {
  const letters = atob(document.getElementById(id)?.textContent ?? "");
  const packed = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

async function showReport() {
  joinCursors(document.body);
  for (const section of document.querySelectorAll("section[data-payload]")) {
    const name = /** @type {HTMLElement} */ (section).dataset.payload;
    try {
      const bundle = new Bundle(await stored(`payload-${name}`), (blob) => stored(`payload-${name}-${blob}`));
      section.append(payloadElement(bundle));
    } catch (error) {
      section.append(html("p", { class: "error", role: "alert" }, `This view could not be shown: ${error}`));
    }
  }
}

void showReport();
