// Requests to the server. The tab stores an action until the server confirms that it is on disk, and sends it again
// if the server restarts. The server recognizes a repeated action by its id.

const STORAGE_KEY = `justright waiting ${location.pathname}`;
const RETRY_MS = 700;
const TIMEOUT_MS = 20000;
const TEMPORARY = [503, 507]; // too busy, disk full

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

let onWaiting = () => {};
export const whenWaiting = (callback) => { onWaiting = callback; };
export let isWaiting = false;

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function answer(response) {
  const value = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }));
  if (!response.ok) throw new Refused(value.error, response.status);
  return value;
}

export async function get(path, fields = {}) {
  const query = new URLSearchParams(fields).toString();
  return answer(await fetch(query ? `${path}?${query}` : path, { signal: AbortSignal.timeout(TIMEOUT_MS) }));
}

export async function post(path, value) {
  const headers = { "content-type": "application/json" };
  return answer(await fetch(path, { method: "POST", headers, body: JSON.stringify(value) }));
}

const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");

export function act(reviewer, base, action) {
  const request = { id: newId(), base, reviewer, action };
  sessionStorage.setItem(STORAGE_KEY, JSON.stringify(request));
  return deliver(request);
}

// The action that was not confirmed before the tab was reloaded; null if there is none.
export function waiting() {
  const stored = sessionStorage.getItem(STORAGE_KEY);
  return stored ? deliver(JSON.parse(stored)) : null;
}

async function deliver(request) {
  for (;;) {
    try {
      const outcome = await post("act", request);
      sessionStorage.removeItem(STORAGE_KEY);
      setWaiting(false);
      return outcome;
    } catch (error) {
      if (error instanceof Refused && !TEMPORARY.includes(error.status)) {
        sessionStorage.removeItem(STORAGE_KEY);
        setWaiting(false);
        throw error;
      }
      setWaiting(true, error instanceof Refused ? error.message : "The server does not respond.");
      await pause(RETRY_MS);
    }
  }
}

function setWaiting(value, reason = "") {
  isWaiting = value;
  onWaiting(value, reason);
}
