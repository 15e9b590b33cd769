// The few HTTP calls of this page. Each resolves to the answer's fields or throws ApiError with a sentence.

import { plain } from "./words.js";

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
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
  let response;
  try {
    response = await fetch(url, { method, headers: { "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  } catch {
    throw new ApiError(0, "The server does not answer.");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(response.status, sentenceOf(answer) ?? `The server answered ${response.status}.`);
  return answer;
}

function sentenceOf(answer) {
  const sentence = answer.error?.message ?? answer.detail;
  return typeof sentence === "string" ? plain(sentence) : null;
}
