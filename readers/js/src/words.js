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

/** How many places see the published status, in a sentence; null if none does, or the row is watched from one. */
export function agreementText({ views, agreeing }) {
  return views && agreeing ? `${agreeing} of ${views} places see this.` : null;
}

/**
 * The notes to show beside a service's row, the general ones first (C12). Whether others run it, and the number of
 * places, is the operator's to say (parseAbout); without the first, it is as at the launch.
 */
export function notesFor(service, runByOthers = null, places = 1) {
  return NOTES.filter(({ id, services }) => {
    if (services === null) return true;
    return id === "others" && runByOthers !== null ? runByOthers : services.includes(service);
  }).map((note) =>
    places < 2 ? note : { ...note, text: note.text.replace("from one place", `from ${places} places`) },
  );
}
