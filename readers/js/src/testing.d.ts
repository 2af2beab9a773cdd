import type { Reader } from "./index.js";

export type State =
  | "fine"
  | "unavailable"
  | "degraded"
  | "catching-up"
  | "unknown"
  | "unmonitored"
  | "stale"
  | "dead-monitor"
  | "new-status"
  | "new-reason"
  | "dissent"
  | "other-version"
  | `reason:${string}`;
/** Those of a reader: nothing was answered yet; and the network is down, while the last report stays. */
export type ReaderState = State | "loading" | "no-network";

/** The names of the documents. In most, the indexer of chain 1 is what differs from "fine". */
export declare const STATES: readonly State[];
/** The live report of a state, as a monitor would write it now. */
export declare function documentOf(state: State, at?: number): string;
/** A history, as a monitor would write it now. */
export declare function historyOf(at?: number): string;

/** Handlers for MSW (give its `http`) of both endpoints; `state` is a name, or a function that gives one. */
export declare function handlers<H>(
  http: { get(url: string, resolver: () => any): H },
  baseUrl: string,
  protocol: string,
  state?: State | "no-network" | (() => State | "no-network"),
): H[];

/** A reader that asks for nothing: `show` sets what it knows, and tells its listeners. */
export declare function fakeReader(state?: ReaderState): Reader & { show(state: ReaderState): void };
