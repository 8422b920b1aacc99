// BLAKE2b (RFC 7693) without a key. Browsers have no hash of their own for pages that come without TLS.

const ROUNDS = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
  [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
  [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
  [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
  [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
  [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
  [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
  [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
  [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];
const START = [0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n, 0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n];
const MIXED = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15], [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]];
const BLOCK = 128; // bytes

const rotated = (value, bits) => BigInt.asUintN(64, (value >> bits) | (value << (64n - bits)));

/** The hash of bytes, hexadecimal. length: of the hash, 1 to 64 bytes. */
export function blake2b(bytes, length) {
  const state = BigUint64Array.from(START);
  state[0] ^= 0x01010000n ^ BigInt(length);
  const blocks = Math.max(1, Math.ceil(bytes.length / BLOCK));
  const padded = new DataView(new ArrayBuffer(blocks * BLOCK));
  new Uint8Array(padded.buffer).set(bytes);
  for (let block = 0; block < blocks; block += 1) {
    const words = Array.from({ length: 16 }, (_, word) => padded.getBigUint64(block * BLOCK + word * 8, true));
    compress(state, words, BigInt(Math.min(bytes.length, (block + 1) * BLOCK)), block === blocks - 1);
  }
  const out = new DataView(new ArrayBuffer(64));
  state.forEach((word, place) => out.setBigUint64(place * 8, word, true));
  return Array.from(new Uint8Array(out.buffer, 0, length), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function compress(state, words, count, last) {
  const v = BigUint64Array.from([...state, ...START]);
  v[12] ^= count;
  if (last) v[14] ^= 0xffffffffffffffffn;
  for (let round = 0; round < 12; round += 1) {
    const order = ROUNDS[round % 10];
    MIXED.forEach(([a, b, c, d], place) => {
      v[a] += v[b] + words[order[2 * place]]; // the array keeps 64 bits
      v[d] = rotated(v[d] ^ v[a], 32n);
      v[c] += v[d];
      v[b] = rotated(v[b] ^ v[c], 24n);
      v[a] += v[b] + words[order[2 * place + 1]];
      v[d] = rotated(v[d] ^ v[a], 16n);
      v[c] += v[d];
      v[b] = rotated(v[b] ^ v[c], 63n);
    });
  }
  for (let word = 0; word < 8; word += 1) state[word] ^= v[word] ^ v[word + 8];
}
