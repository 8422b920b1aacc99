// Reads vectors as the server sends them.

const ARRAYS = {
  F32: (buffer, start, length) => new Float32Array(buffer.slice(start, start + length)),
  F16: (buffer, start, length) => new Uint16Array(buffer.slice(start, start + length)),
  I8: (buffer, start, length) => new Int8Array(buffer, start, length),
  U8: (buffer, start, length) => new Uint8Array(buffer, start, length),
  I32: (buffer, start, length) => new Int32Array(buffer.slice(start, start + length)),
  I64: (buffer, start, length) => Array.from(new BigInt64Array(buffer.slice(start, start + length)), Number),
  BOOL: (buffer, start, length) => Array.from(new Uint8Array(buffer, start, length), Boolean),
};

/** Reads the binary answer of /embed: for each text what was asked for. */
export function embeddingsOf(buffer) {
  const size = Number(new DataView(buffer).getBigUint64(0, true));
  const { __metadata__: metadata, ...entries } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
  const arrays = {};
  for (const [name, { dtype, data_offsets: [start, end] }] of Object.entries(entries)) {
    arrays[name] = ARRAYS[dtype](buffer, 8 + size + start, end - start);
  }
  const rows = arrays.tokens.map((tokens, row) => {
    const found = { tokens, truncated: arrays.truncated[row] };
    if (arrays.dense) found.dense = rowsOf(arrays.dense, entries.dense.shape[1], row, row + 1)[0];
    if (arrays.dense_scales) found.denseScale = arrays.dense_scales[row];
    if (arrays.sparse_indptr) {
      const [start, end] = arrays.sparse_indptr.slice(row, row + 2);
      found.sparse = {
        tokenIds: arrays.sparse_token_ids.subarray(start, end),
        weights: arrays.sparse_weights.subarray(start, end),
      };
    }
    if (arrays.colbert) {
      const [start, end] = arrays.colbert_offsets.slice(row, row + 2);
      found.colbert = rowsOf(arrays.colbert, entries.colbert.shape[1], start, end);
      if (arrays.colbert_scales) found.colbertScales = arrays.colbert_scales.subarray(start, end);
    }
    return found;
  });
  const { model, fingerprint, dtype = "float32" } = metadata;
  return { model, fingerprint, dtype, embeddings: rows };
}

/** A vector of a dtype as float32; signs become 1 and -1, scaled to length 1. scale: of int8. */
export function decodeVector(values, dtype, scale = 1) {
  if (dtype === "int8") return Float32Array.from(values, (value) => value * scale);
  if (dtype === "float16") return Float32Array.from(values, half);
  if (dtype !== "binary" && dtype !== "ubinary") return Float32Array.from(values);
  const moved = dtype === "binary" ? 128 : 0;
  const length = 1 / Math.sqrt(values.length * 8);
  return Float32Array.from({ length: values.length * 8 }, (_, place) =>
    ((values[place >> 3] + moved) >> (7 - (place & 7))) & 1 ? length : -length,
  );
}

/** The number that 16 bits stand for (IEEE 754, binary16): Float16Array is not everywhere. */
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

function rowsOf(values, width, start, end) {
  return Array.from({ length: end - start }, (_, row) => values.subarray((start + row) * width, (start + row + 1) * width));
}
