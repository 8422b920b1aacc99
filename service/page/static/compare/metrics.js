// How good a ranking is, from the grades of judged documents.

/**
 * nDCG@k with linear gains, as trec_eval has it: Σ grade / log2(rank + 1), over what the best order would give
 * (Järvelin and Kekäläinen, TOIS 2002). Documents without a grade count 0.
 * ranked: ids, best first; grades: Map of id to grade.
 */
export function ndcg(ranked, grades, k) {
  const gain = (found) => found.slice(0, k).reduce((sum, grade, place) => sum + Math.max(0, grade) / Math.log2(place + 2), 0);
  const best = gain([...grades.values()].sort((a, b) => b - a));
  return best === 0 ? 0 : gain(ranked.map((id) => grades.get(id) ?? 0)) / best;
}

/** Share of the relevant documents, those with a grade above 0, that are among the first k. */
export function recall(ranked, grades, k) {
  const relevant = [...grades.values()].filter((grade) => grade > 0).length;
  return relevant === 0 ? 0 : ranked.slice(0, k).filter((id) => grades.get(id) > 0).length / relevant;
}

/** The mean of numbers, 0 of none. */
export function mean(values) {
  return values.length === 0 ? 0 : values.reduce((sum, each) => sum + each, 0) / values.length;
}
