// Sentences for people.

import { NOTES, REASON_TEXTS, STATUS_TEXTS } from "./sentences.js";

/** An effective status in a sentence. */
export function statusText(effective) {
  return textIn(STATUS_TEXTS, effective) ?? STATUS_TEXTS.unknown;
}

/** A reason in a sentence; null for one that this reader does not know: then the status alone counts (C5). */
export function reasonText(reason) {
  return textIn(REASON_TEXTS, reason);
}

function textIn(texts, key) {
  return Object.keys(texts).includes(key) ? texts[key] : null;
}

/**
 * The notes to show beside a service's row, the general ones first (C12). Whether others run it is the operator's to
 * say (parseAbout); without that, it is as at the launch.
 */
export function notesFor(service, runByOthers = null) {
  return NOTES.filter(({ id, services }) => {
    if (services === null) return true;
    return id === "others" && runByOthers !== null ? runByOthers : services.includes(service);
  });
}
