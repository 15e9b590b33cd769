// Draws the atlas: all that was discovered, the view's frame, and what the model no longer remembers faded.

import { TILE_PX, viewBox } from "./atlas.js";
import { byId, say } from "./dom.js";
import { count, plural } from "./words.js";

const REDRAW_MS = 250;
const SIZES = [24, 16, 8, 4]; // screen pixels of a tile: multiples that keep its own pixels even
const MARGIN = 1; // tiles around what is known

export class WorldMap {
  #canvas = byId("map");
  #caption = byId("map-count");
  #atlas;
  #tiles = new Map(); // "y,x" -> a canvas of one tile
  #now = null; // {pose, block, width, height} of the newest frame
  #memoryBlocks = null;
  #dirty = false;

  constructor(atlas) {
    this.#atlas = atlas;
    setInterval(() => this.#dirty && !document.hidden && this.#draw(), REDRAW_MS);
    new ResizeObserver(() => (this.#dirty = true)).observe(this.#canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (this.#dirty = true));
  }

  /** Blocks after which the model no longer sees a place it has left. */
  remember(memoryBlocks) {
    this.#memoryBlocks = memoryBlocks;
  }

  seen(frame, changed) {
    for (const tile of changed) this.#tiles.set(`${tile.y},${tile.x}`, picture(tile));
    this.#now = frame;
    this.#dirty = true;
  }

  #draw() {
    this.#dirty = false;
    const { bounds } = this.#atlas;
    if (!bounds || !this.#now) return;
    const context = this.#sized();
    const place = this.#placement(bounds);
    this.#drawTiles(context, place);
    this.#drawView(context, place);
    say(this.#caption, this.#words());
  }

  #sized() {
    const ratio = devicePixelRatio || 1;
    const [width, height] = [this.#canvas.clientWidth, this.#canvas.clientHeight].map((px) => Math.round(px * ratio));
    if (this.#canvas.width !== width || this.#canvas.height !== height) Object.assign(this.#canvas, { width, height });
    const context = this.#canvas.getContext("2d");
    context.clearRect(0, 0, width, height);
    context.imageSmoothingEnabled = false;
    return context;
  }

  // As large as fits; where even the smallest does not fit, around the view.
  #placement({ top, left, bottom, right }) {
    const ratio = devicePixelRatio || 1;
    const { width, height } = this.#canvas;
    const [rows, columns] = [bottom - top + 1, right - left + 1];
    const fit = Math.min(width / (columns + 2 * MARGIN), height / (rows + 2 * MARGIN));
    const size = (SIZES.find((candidate) => candidate * ratio <= fit) ?? SIZES.at(-1)) * ratio;
    const middle = size <= fit ? { y: top + rows / 2, x: left + columns / 2 } : this.#now.pose;
    return { size, x: Math.round(width / 2 - middle.x * size), y: Math.round(height / 2 - middle.y * size) };
  }

  #drawTiles(context, { size, x, y }) {
    const { width, height } = context.canvas;
    for (const tile of this.#atlas.tiles.values()) {
      const [left, top] = [x + tile.x * size, y + tile.y * size];
      if (left + size < 0 || top + size < 0 || left > width || top > height) continue;
      context.globalAlpha = this.#forgotten(tile) ? 0.3 : 1;
      context.drawImage(this.#tiles.get(`${tile.y},${tile.x}`), left, top, size, size);
    }
    context.globalAlpha = 1;
  }

  #drawView(context, { size, x, y }) {
    const { top, left, rows, columns } = viewBox(this.#now.width, this.#now.height, this.#now.pose);
    const box = [x + left * size - 1, y + top * size - 1, columns * size + 2, rows * size + 2];
    for (const [colour, line] of [["#10151c", 4], ["#ffffff", 2]]) {
      context.strokeStyle = colour;
      context.lineWidth = line * (devicePixelRatio || 1) * 0.75;
      context.strokeRect(...box);
    }
  }

  #forgotten(tile) {
    return this.#memoryBlocks !== null && this.#now.block - tile.block > this.#memoryBlocks;
  }

  #words() {
    const tiles = [...this.#atlas.tiles.values()];
    const faded = tiles.filter((tile) => this.#forgotten(tile)).length;
    return faded ? `${plural(tiles.length, "tile")}, ${count(faded)} of them faded` : plural(tiles.length, "tile");
  }
}

function picture(tile) {
  const canvas = Object.assign(document.createElement("canvas"), { width: TILE_PX, height: TILE_PX });
  canvas.getContext("2d").putImageData(tile.pixels, 0, 0);
  return canvas;
}
