// What was seen where: the tiles of every frame shown, by their place in the world. Pure.
//
// The tile in the middle of a view carries the crosshair: it is left out until it is seen elsewhere in a view.

export const TILE_PX = 8;
const ALIKE = 6; // mean difference of a channel, of 255, up to which two tiles are one picture

export class Atlas {
  tiles = new Map(); // "y,x" -> {y, x, pixels, block}
  bounds = null; // {top, left, bottom, right}, inclusive

  /** Keep what a frame shows. Returns the tiles that are new or look different. */
  add(image, pose, block) {
    const changed = [];
    for (const tile of tilesOf(image, pose)) {
      if (tile.middle) continue;
      const known = this.tiles.get(tile.key);
      const same = known && alike(known.pixels, tile.pixels);
      if (same) known.block = block;
      else changed.push(this.#keep(tile, block));
    }
    return changed;
  }

  /** Compare a view with what was seen at its place: {known, different} in tiles. */
  compare(image, pose) {
    const verdict = { known: 0, different: 0 };
    for (const tile of tilesOf(image, pose)) {
      const seen = this.tiles.get(tile.key);
      if (!seen || tile.middle) continue;
      verdict.known++;
      if (!alike(seen.pixels, tile.pixels)) verdict.different++;
    }
    return verdict;
  }

  /** What was seen in the view from `pose`: a transparent picture where nothing was. */
  view(width, height, pose) {
    const image = new ImageData(width, height);
    for (const { key, i, j } of placesOf(width, height, pose)) {
      const seen = this.tiles.get(key);
      if (seen) blit(seen.pixels, image, i, j);
    }
    return image;
  }

  #keep({ key, y, x, pixels }, block) {
    const tile = { y, x, pixels, block };
    this.tiles.set(key, tile);
    const b = this.bounds ?? { top: y, left: x, bottom: y, right: x };
    this.bounds = {
      top: Math.min(b.top, y),
      left: Math.min(b.left, x),
      bottom: Math.max(b.bottom, y),
      right: Math.max(b.right, x),
    };
    return tile;
  }
}

/** The view's first tile in the world, and its size in tiles. */
export function viewBox(width, height, pose) {
  const rows = Math.floor(height / TILE_PX);
  const columns = Math.floor(width / TILE_PX);
  return { top: pose.y - (rows >> 1), left: pose.x - (columns >> 1), rows, columns };
}

function* placesOf(width, height, pose) {
  const { top, left, rows, columns } = viewBox(width, height, pose);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      const middle = i === rows >> 1 && j === columns >> 1;
      yield { key: `${top + i},${left + j}`, y: top + i, x: left + j, i, j, middle };
    }
  }
}

function* tilesOf(image, pose) {
  for (const place of placesOf(image.width, image.height, pose)) yield { ...place, pixels: cut(image, place.i, place.j) };
}

function cut(image, i, j) {
  const tile = new ImageData(TILE_PX, TILE_PX);
  for (let row = 0; row < TILE_PX; row++) {
    const from = ((i * TILE_PX + row) * image.width + j * TILE_PX) * 4;
    tile.data.set(image.data.subarray(from, from + TILE_PX * 4), row * TILE_PX * 4);
  }
  return tile;
}

function blit(tile, image, i, j) {
  for (let row = 0; row < TILE_PX; row++) {
    const to = ((i * TILE_PX + row) * image.width + j * TILE_PX) * 4;
    image.data.set(tile.data.subarray(row * TILE_PX * 4, (row + 1) * TILE_PX * 4), to);
  }
}

function alike(one, other) {
  let sum = 0;
  for (let i = 0; i < one.data.length; i++) sum += Math.abs(one.data[i] - other.data[i]);
  return sum <= ALIKE * TILE_PX * TILE_PX * 3;
}
