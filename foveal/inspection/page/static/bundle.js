// A payload as bytes: a header in JSON, arrays, and tiles that are asked for when they are needed.

/** @typedef {{name: string, labels: string[], count: number}} Axis */
/** @typedef {{at: number, size: number}} Place */
/** @typedef {{shape: number[], code: string, at?: number, size?: number, blob?: number, tile?: number,
 *   tiles?: ArrayReference[][], pool?: number, overview?: ArrayReference}} ArrayReference */
/** @typedef {Float32Array | Float64Array} Numbers */
/** @typedef {{text: string, role: string}} Caption */
/** @typedef {{kind: string, title: string, sentence: string, [field: string]: any}} Panel */
/** @typedef {{view: string, subject: string, title: string, caveat: string, exactness: string,
 *   facts: [string, string][], panels: Panel[]}} Header */
/** @typedef {(blob: number) => Promise<ArrayBuffer>} BlobSource */

const LEVELS = 254;
const NOTHING = 255;
const BLOBS_KEPT = 48;

/** Shares by their square-root code. */
const SHARES = Float32Array.from({ length: 256 }, (_, code) => (code === NOTHING ? NaN : (code / LEVELS) ** 2));

export class Bundle {
  /**
   * @param {ArrayBuffer} content
   * @param {BlobSource} source
   */
  constructor(content, source) {
    const length = Number(new DataView(content).getBigUint64(0, true));
    /** @type {Header} */
    this.header = JSON.parse(new TextDecoder().decode(new Uint8Array(content, 8, length)));
    this.content = content;
    this.start = 8 + length;
    this.source = source;
    /** @type {Map<number, Promise<Numbers>>} */
    this.kept = new Map();
  }

  /**
   * Return bytes of the body.
   * @param {Place} place
   * @returns {Uint8Array}
   */
  bytes(place) {
    return new Uint8Array(this.content, this.start + place.at, place.size);
  }

  /**
   * Return the numbers of an array in the body.
   * @param {ArrayReference} reference
   * @returns {Numbers}
   */
  numbers(reference) {
    const start = this.start + (reference.at ?? 0);
    return decodeNumbers(this.content.slice(start, start + (reference.size ?? 0)), reference.code);
  }

  /**
   * Return the numbers of an array, which may have to be fetched.
   * @param {ArrayReference} reference
   * @returns {Promise<Numbers>}
   */
  fetched(reference) {
    if (reference.blob === undefined) return Promise.resolve(this.numbers(reference));
    const number = reference.blob;
    let numbers = this.kept.get(number);
    if (!numbers) numbers = this.source(number).then((content) => decodeNumbers(content, reference.code));
    this.kept.delete(number); // the last is the newest
    this.kept.set(number, numbers);
    numbers.catch(() => this.kept.delete(number));
    for (const old of this.kept.keys()) {
      if (this.kept.size <= BLOBS_KEPT) break;
      this.kept.delete(old);
    }
    return numbers;
  }
}

/**
 * @param {ArrayBuffer} content
 * @param {string} code
 * @returns {Numbers}
 */
function decodeNumbers(content, code) {
  if (code === "float64") return new Float64Array(content);
  if (code === "float32") return new Float32Array(content);
  const codes = new Uint8Array(content);
  const numbers = new Float32Array(codes.length);
  for (let place = 0; place < codes.length; place += 1) numbers[place] = SHARES[codes[place]];
  return numbers;
}

/** A map of rows and columns, of which parts are read. */
export class NumberMap {
  /**
   * @param {Bundle} bundle
   * @param {ArrayReference} reference
   */
  constructor(bundle, reference) {
    this.bundle = bundle;
    this.reference = reference;
    this.rows = reference.shape[0];
    this.columns = reference.shape[1];
    /** Whether numbers are rounded to square-root codes. */
    this.rounded = reference.code === "sqrt8";
    /** Rows and columns that can be read at once. */
    this.reach = reference.tile ?? Math.max(this.rows, this.columns);
  }

  /**
   * Return a window of the map, with at most `side` rows and columns of squares.
   * @param {{top: number, left: number, rows: number, columns: number}} area
   * @param {number} side
   * @returns {Promise<{values: Numbers, rows: number, columns: number, pool: number}>}
   */
  async window(area, side) {
    const { tile, overview } = this.reference;
    const whole = Math.max(area.rows, area.columns);
    if (tile && overview && whole > tile) {
      const pool = this.reference.pool ?? 1;
      const numbers = await this.bundle.fetched(overview);
      return pooled(cut(numbers, overview.shape[1], area, pool), side, pool);
    }
    return pooled(await this.cells(area), side, 1);
  }

  /**
   * Return the cells of a window.
   * @param {{top: number, left: number, rows: number, columns: number}} area
   * @returns {Promise<{values: Numbers, rows: number, columns: number}>}
   */
  async cells(area) {
    const { tile, tiles } = this.reference;
    if (!tile || !tiles) return cut(await this.bundle.fetched(this.reference), this.columns, area, 1);
    const values = new Float32Array(area.rows * area.columns);
    for (let down = Math.floor(area.top / tile); down * tile < area.top + area.rows; down += 1) {
      for (let across = Math.floor(area.left / tile); across * tile < area.left + area.columns; across += 1) {
        const reference = tiles[down][across];
        copyOverlap(await this.bundle.fetched(reference), reference.shape, [down * tile, across * tile], area, values);
      }
    }
    return { values, rows: area.rows, columns: area.columns };
  }
}

/**
 * Copy the part of a tile that lies in a window.
 * @param {Numbers} numbers
 * @param {number[]} shape
 * @param {number[]} corner
 * @param {{top: number, left: number, rows: number, columns: number}} area
 * @param {Float32Array} values
 */
function copyOverlap(numbers, shape, corner, area, values) {
  const left = Math.max(area.left, corner[1]);
  const right = Math.min(area.left + area.columns, corner[1] + shape[1]);
  for (let row = Math.max(area.top, corner[0]); row < Math.min(area.top + area.rows, corner[0] + shape[0]); row += 1) {
    const from = (row - corner[0]) * shape[1] - corner[1];
    values.set(numbers.subarray(from + left, from + right), (row - area.top) * area.columns + left - area.left);
  }
}

/**
 * Return a window of numbers in which each stands for `pool` x `pool` cells.
 * @param {Numbers} numbers
 * @param {number} width
 * @param {{top: number, left: number, rows: number, columns: number}} area
 * @param {number} pool
 */
function cut(numbers, width, area, pool) {
  const [top, left] = [Math.floor(area.top / pool), Math.floor(area.left / pool)];
  const [rows, columns] = [Math.ceil(area.rows / pool), Math.ceil(area.columns / pool)];
  if (!top && !left && columns === width) return { values: numbers.subarray(0, rows * columns), rows, columns };
  const values = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row += 1) {
    const start = (top + row) * width + left;
    values.set(numbers.subarray(start, start + columns), row * columns);
  }
  return { values, rows, columns };
}

/**
 * Return numbers with at most `side` rows and columns: each is the one farthest from 0 of several.
 * @param {{values: Numbers, rows: number, columns: number}} cells
 * @param {number} side
 * @param {number} before
 */
export function pooled(cells, side, before) {
  const size = Math.max(1, Math.ceil(Math.max(cells.rows, cells.columns) / side));
  if (size === 1) return { ...cells, pool: before };
  const [rows, columns] = [Math.ceil(cells.rows / size), Math.ceil(cells.columns / size)];
  const values = new Float32Array(rows * columns).fill(NaN);
  for (let row = 0; row < cells.rows; row += 1) {
    for (let column = 0; column < cells.columns; column += 1) {
      const value = cells.values[row * cells.columns + column];
      const place = Math.floor(row / size) * columns + Math.floor(column / size);
      if (Number.isNaN(values[place]) || Math.abs(value) > Math.abs(values[place])) values[place] = value;
    }
  }
  return { values, rows, columns, pool: before * size };
}
