// Takes the SHA-256 of what follows a frame's header, away from the thread that paints.

import { sha256 } from "./sha256.js";
import { HEADER_BYTES, hex } from "./wire.js";

const subtle = self.crypto?.subtle;

self.onmessage = async ({ data: { id, buffer } }) => {
  const pixels = new Uint8Array(buffer, HEADER_BYTES);
  const digest = subtle ? new Uint8Array(await subtle.digest("SHA-256", pixels)) : sha256(pixels);
  self.postMessage({ id, digest: hex(digest) });
};
