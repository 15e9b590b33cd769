// What this tab keeps over a reload. A browser that keeps nothing for pages throws: then nothing is kept.

export function remember(name, value) {
  try {
    sessionStorage.setItem(name, JSON.stringify(value));
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
  }
}

/** What was kept under a name, or null. */
export function recall(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name));
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
    return null;
  }
}
