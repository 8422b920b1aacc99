// Figures in Prometheus' text format.

const LINE = /^(\w+)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** What a server measured. text: of /metrics. */
export class Metrics {
  constructor(text) {
    this._series = new Map();
    for (const line of text.split("\n")) {
      const [, name, labels = "", value] = line.match(LINE) ?? [];
      if (name === undefined) continue;
      const named = Object.fromEntries([...labels.matchAll(LABEL)].map(([, label, text]) => [label, text.replace(/\\(["\\])/g, "$1")]));
      this._series.set(name, [...(this._series.get(name) ?? []), { labels: named, value: Number(value) }]);
    }
  }

  /** The series of a name whose labels a test accepts, as {labels, value}. */
  of(name, accepts = () => true) {
    return (this._series.get(name) ?? []).filter(({ labels }) => accepts(labels));
  }

  /** The sum of these; null where there are none. */
  sum(name, accepts) {
    const found = this.of(name, accepts);
    return found.length ? found.reduce((sum, { value }) => sum + value, 0) : null;
  }

  /** A metric's values by one of its labels. */
  by(label, name) {
    return new Map(this.of(name).map(({ labels, value }) => [labels[label], value]));
  }
}
