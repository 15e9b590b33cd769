// The few HTTP calls of this page. Each resolves to the answer's fields or throws ApiError with a sentence.
//
// An answer that does not come whole says nothing of what was asked for: it may have been done.

import { plain } from "./words.js";

const READ_WITHIN_MS = 10000; // a browser has six connections for a server: a silent path must not take them all

export class ApiError extends Error {
  /** `refused`: the server itself says that it did not do it. */
  constructor(status, message, refused = false) {
    super(message);
    this.status = status;
    this.refused = refused;
  }
}

export const openSession = () => call("POST", "/api/sessions", {});
export const findSession = (session) => call("GET", path(session));
export const moveSession = (session, request) => call("POST", `${path(session)}/move`, request);
export const planMove = (session, wish) => call("GET", `${path(session)}/plan${query(wish)}`);
export const recoverSession = (session) => call("POST", `${path(session)}/recover`, {});

const path = (session) => `/api/sessions/${encodeURIComponent(session)}`;

function query(fields) {
  const said = Object.entries(fields).filter(([, value]) => value != null);
  return said.length ? `?${new URLSearchParams(said)}` : "";
}

async function call(method, url, body) {
  const signal = method === "GET" ? AbortSignal.timeout(READ_WITHIN_MS) : undefined;
  let response;
  try {
    response = await fetch(url, {
      method,
      headers: { "Content-Type": "application/json" },
      body: body && JSON.stringify(body),
      signal,
    });
  } catch {
    throw new ApiError(0, "The server does not answer.");
  }
  const answer = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer;
  const sentence = answer?.error?.message ?? answer?.detail;
  if (typeof sentence === "string") throw new ApiError(response.status, plain(sentence), true);
  if (response.ok) throw new ApiError(response.status, "The server's answer did not come whole.");
  throw new ApiError(response.status, `The server answered ${response.status}.`);
}
