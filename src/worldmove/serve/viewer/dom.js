// The little that this page needs of the document.

export const byId = (id) => document.getElementById(id);

/** Make an element: attributes by name, then children (strings become text, never markup). */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** Set text only where it differs: a live region speaks at each change of its nodes. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Call `act` on a choice; one made by pointer gives the keys back to the world, one made by keys keeps them. */
export function onChoice(select, act) {
  let byPointer = false;
  select.addEventListener("pointerdown", () => (byPointer = true));
  select.addEventListener("keydown", () => (byPointer = false));
  select.addEventListener("change", () => {
    act();
    if (byPointer) byId("stage").focus({ preventScroll: true });
  });
}

/** Call `act` on a click; a click by pointer gives the keys back to the world. */
export function onPress(button, act) {
  button.addEventListener("click", (event) => {
    if (button.getAttribute("aria-disabled") === "true") return;
    act();
    if (event.detail > 0) byId("stage").focus({ preventScroll: true });
  });
}
