// Reads documents, a line of base64 each, and tells in a line of JSON what the JavaScript reader makes of them.
import { createInterface } from "node:readline";
import {
  bucketsOf,
  coverageOf,
  effectiveStatus,
  incidentsOf,
  parseHistory,
  parseReport,
  rollUp,
  WINDOWS,
} from "../../readers/js/src/page.js";

const now = Number(process.argv[2]);

function report(bytes) {
  const read = parseReport(bytes);
  const { status, healthy, counts } = rollUp(read, { now });
  if (!read.readable) return { problem: read.problem, status, healthy };
  const rows = read.rows.map((row) => [
    row.service ?? null,
    row.chainId ?? null,
    row.readable,
    effectiveStatus(row, now),
    row.metrics ?? {},
    row.problem ?? null,
  ]);
  return { problem: null, status, healthy, counts, generatedAt: read.generatedAt, rows };
}

function history(bytes) {
  const read = parseHistory(bytes);
  if (!read.readable) return { problem: read.problem };
  const rows = read.rows.map((row) => [
    row.service ?? null,
    row.chainId ?? null,
    row.buckets ?? null,
    row.uptime ?? null,
    row.problem ?? null,
    bucketsOf(read, row).filter((bucket) => bucket.status === "current").length,
    incidentsOf(read, row).map((incident) => [incident.beginsAt, incident.endsAt, incident.worst]),
    Object.keys(WINDOWS).map((window) => coverageOf(read, row, window).known),
  ]);
  return { problem: null, length: read.length, from: read.from, to: read.to, rows };
}

for await (const line of createInterface({ input: process.stdin })) {
  const bytes = new Uint8Array(Buffer.from(line, "base64"));
  let told;
  try {
    told = { report: report(bytes), history: history(bytes) };
  } catch (error) {
    told = { died: String(error) };
  }
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
