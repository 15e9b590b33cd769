// SHA-256 (FIPS 180-4), for pages that are not served from localhost or over https: there the browser's own is
// withheld. A frame of 64x64 takes well under a millisecond.

const PRIMES = firstPrimes(64);
const ROUND = PRIMES.map((prime) => fraction(Math.cbrt(prime)));
const START = PRIMES.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));

/** The digest of `bytes`, 32 bytes. */
export function sha256(bytes) {
  const padded = pad(bytes);
  const view = new DataView(padded.buffer);
  const state = Int32Array.from(START);
  const words = new Int32Array(64);
  for (let offset = 0; offset < padded.length; offset += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getInt32(offset + 4 * i);
    compress(state, words);
  }
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, i) => digest.setInt32(4 * i, word));
  return new Uint8Array(digest.buffer);
}

function compress(state, words) {
  for (let i = 16; i < 64; i++) {
    const near = words[i - 15];
    const far = words[i - 2];
    const small0 = turn(near, 7) ^ turn(near, 18) ^ (near >>> 3);
    const small1 = turn(far, 17) ^ turn(far, 19) ^ (far >>> 10);
    words[i] = (words[i - 16] + small0 + words[i - 7] + small1) | 0;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i++) {
    const big1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
    const big0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
    const first = (h + big1 + ((e & f) ^ (~e & g)) + ROUND[i] + words[i]) | 0;
    const second = (big0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [a, b, c, d, e, f, g, h] = [(first + second) | 0, a, b, c, (d + first) | 0, e, f, g];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i] = (state[i] + word) | 0));
}

function pad(bytes) {
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  new DataView(padded.buffer).setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n);
  return padded;
}

function turn(word, by) {
  return (word >>> by) | (word << (32 - by));
}

function fraction(number) {
  return ((number - Math.floor(number)) * 2 ** 32) | 0;
}

function firstPrimes(count) {
  const primes = [];
  for (let n = 2; primes.length < count; n++) if (primes.every((prime) => n % prime)) primes.push(n);
  return primes;
}
