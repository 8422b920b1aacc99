// What can be searched: collections, and aliases of one or of several.

import { api, ApiError, collectionPath } from "./api.js";
import { t } from "./language.js";

const NAMED = 3; // collections of an alias that its label has
const UNKNOWN = { fields: {}, documents: null };

/** What the key may search. */
export class Targets {
  constructor(collections, aliases) {
    this._collections = new Map(collections.map((each) => [each.name, each]));
    this._aliases = new Map(aliases.map((each) => [each.alias, each.collections]));
  }

  /** Asks the server for them. signal: ends the requests. */
  static async asked(signal) {
    const [{ collections }, { aliases }] = await Promise.all([api("GET", "/collections", { signal }), api("GET", "/aliases", { signal })]);
    return new Targets(collections, aliases);
  }

  /** All names: those of collections, then those of aliases. */
  get names() {
    return [...this._collections.keys(), ...this._aliases.keys()];
  }

  /** Pairs of a name and what is shown of it. */
  get options() {
    return this.names.map((name) => [name, this._label(name)]);
  }

  _label(name) {
    const meant = this._aliases.get(name);
    if (meant === undefined) return name;
    const collections = meant.slice(0, NAMED).join(", ") + (meant.length > NAMED ? ", …" : "");
    return t("search.alias", { name, collections });
  }

  /** The fields and the number of documents of a name; none where the server does not tell, as a search will say why. */
  async described(name, signal) {
    if (this._collections.has(name)) return this._collections.get(name);
    try {
      return await api("GET", collectionPath(name), { signal });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return UNKNOWN;
    }
  }
}
