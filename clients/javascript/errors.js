// What a call can throw.

/** Anything of this package. */
export class TercetError extends Error {
  name = this.constructor.name;
}

/** The server cannot be reached, or did not answer in time. */
export class ConnectionFailedError extends TercetError {}

/** The server refused. */
export class ApiError extends TercetError {
  constructor(status, message, code = "", param = null) {
    super(message);
    Object.assign(this, { status, code, param });
  }
}

/** 404: there is no such collection, document, alias, backup or job. */
export class NotFoundError extends ApiError {}

/** 409: it conflicts with what exists. */
export class ConflictError extends ApiError {}

/** 429 or 503, still after all retries. */
export class OverloadedError extends ApiError {}

const KINDS = { 404: NotFoundError, 409: ConflictError, 429: OverloadedError, 503: OverloadedError };

/** The error that a refusal stands for. */
export async function errorOf(answer) {
  const Kind = KINDS[answer.status] ?? ApiError;
  const text = await answer.text();
  try {
    const { message, code, param } = JSON.parse(text).error;
    return new Kind(answer.status, message, code, param);
  } catch {
    return new Kind(answer.status, `${answer.url} answered ${answer.status}: ${text.slice(0, 200)}`);
  }
}
