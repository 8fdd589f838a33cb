// The server of the page: what it is asked, and its errors.

import { Bundle } from "./bundle.js";

/** @typedef {{id: number, name: string, run: string, data: string | null, model: string | null, score: number | null,
 *   score_name: string | null, score_split: string | null, steps: number | null, minutes: number | null, state: string}} RunFacts */
/** @typedef {{name: string, kind: string, help: string, default: string, choices: string[], takes_file: boolean,
 *   is_input: boolean}} OptionField */
/** @typedef {{name: string, summary: string, fields: OptionField[], has_control: boolean}} ViewFacts */

const LOST = "The server has ended: start foveal inspect RUN --open again.";

/** The server does not answer any more. */
export class ServerEnded extends Error {}

/**
 * Ask the server. An answer that is no success is an error with its line.
 * @param {string} path
 * @param {RequestInit} [options]
 * @returns {Promise<Response>}
 */
async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ServerEnded(LOST);
  }
  if (response.ok) return response;
  let line = `the server answered with ${response.status}`;
  try {
    const answer = await response.json();
    if (typeof answer.error === "string") line = answer.error;
  } catch {
    // an answer without a line
  }
  throw new Error(line);
}

/**
 * @returns {Promise<{runs: RunFacts[], start: {run: number, view: string | null, beside: number | null, early: string | null}}>}
 */
export async function fetchRuns() {
  return (await ask("api/runs")).json();
}

/**
 * @param {number} run
 * @returns {Promise<{views: ViewFacts[], others: Record<string, string>, first: string | null}>}
 */
export async function fetchViews(run) {
  return (await ask(`api/runs/${run}/views`)).json();
}

/**
 * Return a text that changes when the run has more steps or other weights.
 * @param {number} run
 * @returns {Promise<string>}
 */
export async function fetchVersion(run) {
  return (await (await ask(`api/runs/${run}/version`)).json()).version;
}

/**
 * @returns {Promise<{running: boolean, done?: number, total?: number, noun?: string}>}
 */
export async function fetchProgress() {
  return (await ask("api/progress")).json();
}

/**
 * Have a view computed. Return its payload, and the lines of its log.
 * @param {number} run
 * @param {string} view
 * @param {Record<string, string>} options
 * @param {boolean} control
 * @param {AbortSignal} signal
 * @returns {Promise<{bundle: Bundle, notes: string[]}>}
 */
export async function computeView(run, view, options, control, signal) {
  const body = JSON.stringify({ run, view, options, control });
  const answer = await ask("api/compute", { method: "POST", headers: { "content-type": "application/json" }, body, signal });
  const { result, notes } = await answer.json();
  const content = await (await ask(`api/results/${result}`, { signal })).arrayBuffer();
  return { bundle: new Bundle(content, async (blob) => (await ask(`api/results/${result}/${blob}`)).arrayBuffer()), notes };
}

/**
 * Send a file. Return the value that stands for it in an option.
 * @param {File} file
 * @returns {Promise<string>}
 */
export async function sendFile(file) {
  const answer = await ask(`api/files?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
  return (await answer.json()).value;
}
