// The binary half of the play wire, as docs/play-wire.md lays it out: bytes in, one frame out. Pure.

export const HEADER_BYTES = 104;
export const LIVE = 0;
export const RECOVERED = 1;
const MAGIC = 0x46504d57; // "WMPF", little endian
const VERSION = 2;

export class WireError extends Error {}

/** Read one binary message. The pixels stay in `buffer`, after the header. Throws WireError. */
export function readFrame(buffer) {
  if (buffer.byteLength < HEADER_BYTES) throw new WireError("a frame came without its header");
  const view = new DataView(buffer);
  if (view.getUint32(0, true) !== MAGIC) throw new WireError("a message came that is no frame");
  if (view.getUint8(4) !== VERSION) throw new WireError(`a frame came in version ${view.getUint8(4)} of the wire`);
  const width = view.getUint16(8, true);
  const height = view.getUint16(10, true);
  if (buffer.byteLength !== HEADER_BYTES + width * height * 3) throw new WireError("a frame came with a wrong size");
  return {
    buffer,
    kind: view.getUint8(5),
    action: view.getUint8(6),
    index: view.getUint8(7),
    width,
    height,
    showAfterMs: view.getUint32(12, true),
    epoch: count(view, 16),
    block: count(view, 24),
    frame: count(view, 32),
    number: count(view, 40),
    pose: { y: view.getInt32(48, true), x: view.getInt32(52, true) },
    serverLife: count(view, 56),
    sha256: hex(new Uint8Array(buffer, 64, 32)),
    receipt: hex(new Uint8Array(buffer, 96, 8)),
  };
}

/** The raw RGB bytes of a frame. */
export function pixelsOf(frame) {
  return new Uint8Array(frame.buffer, HEADER_BYTES);
}

/** RGB to opaque RGBA. */
export function toImage(frame) {
  const rgb = pixelsOf(frame);
  const image = new ImageData(frame.width, frame.height);
  const rgba = image.data;
  for (let from = 0, to = 0; from < rgb.length; from += 3, to += 4) {
    rgba[to] = rgb[from];
    rgba[to + 1] = rgb[from + 1];
    rgba[to + 2] = rgb[from + 2];
    rgba[to + 3] = 255;
  }
  return image;
}

export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Counts stay below 2^53 for longer than any session lives.
function count(view, offset) {
  return Number(view.getBigUint64(offset, true));
}
