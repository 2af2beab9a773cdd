/** Instants are milliseconds since 1970, as `Date.now()` gives them. */
export type Instant = number;

// ---- Written by `make schemas`, from readers/python/src/lookout_reader/statuses.py and words.py
/** What a row can come to. */
export type EffectiveStatus =
  | "unavailable"
  | "degraded"
  | "catching-up"
  | "stale"
  | "unknown"
  | "current"
  | "unmonitored";
/** Those of an incident. */
export type TroubleStatus = "unavailable" | "degraded" | "catching-up";
export type BucketCharacter = "c" | "k" | "d" | "u" | "?" | "." | "-";
export type NoteId =
  | "one-view"
  | "not-a-signal"
  | "history"
  | "partial"
  | "peers"
  | "wallet-sync"
  | "proofs"
  | "others";
// ---- Until here

export type BucketStatus = Exclude<EffectiveStatus, "stale">;
export type Window = "24h" | "7d" | "14d";

/** The contract's services, which every report has. */
export type KnownService = KnownNames["name"];
/** A table, since the compiler's errors spell out what is in one. */
interface KnownNames {
  readonly name: "messaging" | "ppoi" | "broadcasters" | "indexer" | "hosted-indexer";
}
/** One of them, or an operator's own. */
export type Service = KnownService | (string & {});
/**
 * The operator's own services that you ask for, which you add:
 * `declare module "lookout-reader" { interface OwnServices { bundler: true } }`.
 */
export interface OwnServices {}
/**
 * A name to ask for. Of a literal the compiler knows whether it is one of the contract's or of OwnServices, and refuses
 * any other: it is most likely misspelt.
 */
export type ServiceName<S extends string> = (S & NoLiteral<S>) | KnownNames["name"] | keyof OwnServices;
type NoLiteral<S extends string> = string extends S ? unknown : never;

export declare const SCHEMA_VERSION: 1;
/** The contract's services, which every report has; an operator's own may be there too. */
export declare const SERVICES: readonly KnownService[];
/** The service that is one check for all chains. */
export declare const SHARED_SERVICE: "messaging";
/** The default allowlist of a roll-up (C11). */
export declare const MAINNETS: readonly number[];
/** Part of no roll-up that does not ask for it on purpose (C11). */
export declare const TEST_NETWORK: 11155111;
/** The windows of uptime and coverage, in seconds. */
export declare const WINDOWS: Readonly<Record<Window, number>>;
/** From worst to best; unmonitored is neither. */
export declare const EFFECTIVE_STATUSES: readonly EffectiveStatus[];
/** Those that are a reading of the service, from worst to best: what uptime counts. */
export declare const KNOWN_STATUSES: readonly EffectiveStatus[];
/** The characters of the history, in the order of EFFECTIVE_STATUSES; a status that it does not have is a space. */
export declare const CHARACTERS: string;
/** What to show people beside the data (C12). */
export declare const NOTES: readonly Note[];

/** A document that cannot be read, and why. */
export interface Unreadable {
  readonly readable: false;
  readonly problem: string;
}

/** A row that cannot be read, with what could be read of its check: `chainId` undefined is one that could not. */
export interface UnreadableRow {
  readonly readable: false;
  readonly service: Service | null;
  readonly chainId: number | null | undefined;
  readonly problem: string;
}

/** The numbers that are known; one that is missing is not 0 (C5). */
export interface Metrics {
  readonly position?: number;
  readonly head?: number;
  readonly responding?: number;
  readonly monitored?: number;
  readonly peers?: number;
  readonly missing?: number;
  readonly extra?: number;
  readonly breaks?: number;
  readonly gap?: number;
  /** From how many places the row is watched. */
  readonly views?: number;
  /** How many of them see the published status. */
  readonly agreeing?: number;
}

/** One row as it was published. What it is worth now, `effectiveStatus` says. */
export interface Row {
  readonly readable: true;
  readonly service: Service;
  readonly chainId: number | null;
  readonly publishedStatus: string | null;
  readonly reason: string | null;
  readonly observedAt: Instant | null;
  readonly lastSuccessAt: Instant | null;
  readonly expiresAt: Instant | null;
  readonly metrics: Metrics;
}

export interface LiveReport {
  readonly readable: true;
  readonly generatedAt: Instant | null;
  readonly rows: readonly (Row | UnreadableRow)[];
  readonly unreadableRows: number;
}

/** The history of one check; `uptime` is as published, null where there is no figure. */
export interface HistoryRow {
  readonly readable: true;
  readonly service: Service;
  readonly chainId: number | null;
  readonly buckets: string;
  readonly uptime: Readonly<Record<Window, number | null>>;
}

/** The last days of the rows: `length` buckets, of which the last, which began at `to`, is still filling. */
export interface History {
  readonly readable: true;
  readonly generatedAt: Instant | null;
  readonly bucketSeconds: number;
  readonly retentionDays: number | null;
  readonly from: Instant;
  readonly to: Instant;
  readonly length: number;
  readonly rows: readonly (HistoryRow | UnreadableRow)[];
  readonly unreadableRows: number;
}

/** The live report in a string or UTF-8 bytes, or why it cannot be read. Never throws (C6, C7). */
export declare function parseReport(text: unknown): LiveReport | Unreadable;
/** The history in a string or UTF-8 bytes, or why it cannot be read. Never throws (C6, C7). */
export declare function parseHistory(text: unknown): History | Unreadable;
/** The instant in `YYYY-MM-DDTHH:mm:ss.sssZ`, with or without the fraction; null for anything else. */
export declare function parseInstant(value: unknown): Instant | null;
/** The instant in a `Date` header; null for anything else. */
export declare function parseHttpDate(value: unknown): Instant | null;

/**
 * What a row is worth when you call it (C1 to C4); one that is unreadable or not there is unknown. The clocks are those
 * of the reader that received it, or the wall clock. The other arguments are for tests.
 */
export declare function effectiveStatus(
  row: Row | UnreadableRow | null | undefined,
  now?: Instant,
  receivedAgoMs?: number | null,
  clockAheadMs?: number | null,
): EffectiveStatus;

/** The row of a check, readable or not; null if there is none (C8). */
export declare function findRow<S extends string>(
  report: LiveReport | Unreadable | null | undefined,
  service: (S & NoLiteral<S>) | KnownNames["name"] | keyof OwnServices,
  chainId: number | null,
): Row | UnreadableRow | null;
export declare function findRow<S extends string>(
  history: History | Unreadable | null | undefined,
  service: (S & NoLiteral<S>) | KnownNames["name"] | keyof OwnServices,
  chainId: number | null,
): HistoryRow | UnreadableRow | null;

/** The key of a check in the map of `rowsByCheck`. */
export declare function checkKey(check: {
  readonly service: string | null;
  readonly chainId: number | null | undefined;
}): string;
/** The rows by check (C8); rows whose check cannot be read are not in it. */
export declare function rowsByCheck(report: LiveReport): Map<string, Row | UnreadableRow>;
export declare function rowsByCheck(history: History): Map<string, HistoryRow | UnreadableRow>;

/** One bucket of one row; `status` is null where there is no data. A filling one is provisional (C13). */
export interface Bucket {
  readonly beginsAt: Instant;
  readonly endsAt: Instant;
  readonly character: BucketCharacter;
  readonly status: BucketStatus | null;
  readonly filling: boolean;
}

/** When the bucket at `index` began. */
export declare function bucketBeginsAt(history: History, index: number): Instant;
/** The buckets of a row with their instants; none if the row is unreadable. */
export declare function bucketsOf(history: History, row: HistoryRow | UnreadableRow | null): Bucket[];

/** Of the `buckets` that a window has, `existing` were recorded, and `known` are what uptime counts. */
export interface Coverage {
  readonly window: Window;
  readonly known: number;
  readonly existing: number;
  readonly buckets: number;
  /** `known` of `buckets` */
  readonly share: number;
  /** `known` of `existing` */
  readonly shareOfExisting: number;
}

export declare function coverageOf(history: History, row: HistoryRow | UnreadableRow | null, window: Window): Coverage;

/** A run of buckets that were not current; `endsAt` is null while it lasts. */
export interface Incident {
  readonly beginsAt: Instant;
  readonly endsAt: Instant | null;
  readonly worst: TroubleStatus;
  readonly buckets: number;
  /** Whether the bucket before was current; otherwise it may have begun earlier. */
  readonly beginSeen: boolean;
  /** Whether the bucket after was current; otherwise it may have gone on unseen. */
  readonly endSeen: boolean;
}

export declare function incidentsOf(history: History, row: HistoryRow | UnreadableRow | null): Incident[];

/** What one check came to; one that is missing or unreadable is unknown. */
export interface CheckSummary {
  readonly service: Service;
  readonly chainId: number | null;
  readonly effective: EffectiveStatus;
  readonly presence: "readable" | "unreadable" | "missing";
  readonly row: Row | UnreadableRow | null;
}

/**
 * By what rows are judged, which tests may give; otherwise it is read at each call. Spreading an update
 * (`{ ...update, chain, services }`), as for 2.0.0, is deprecated: it does nothing any more.
 */
export interface Clocks {
  readonly now?: Instant;
  /** How long ago the report first arrived. */
  readonly receivedAgoMs?: number | null;
  /** By how much the device's clock is ahead; by one that is known to be behind nothing is current. */
  readonly clockAheadMs?: number | null;
}

/** What a wallet needs on a chain. */
export interface Needs<S extends string> extends Clocks {
  /** The user's chain; a test network is a chain like any other. */
  readonly chain: number;
  /** All of them have to be current. Those with one row for all chains, such as messaging, are found by themselves. */
  readonly services: readonly ((S & NoLiteral<S>) | KnownNames["name"] | keyof OwnServices)[];
}

/** Stop for `bad` alone. For `unknown` warn, and let the user decide: it may be Lookout that is down. */
export type Severity = "bad" | "warn" | "unknown";
/** Why nothing is known. */
export type Cause =
  /** This device's clock is wrong. */
  | "device-clock"
  /** No usable answer got here. */
  | "network"
  /** Lookout itself gives nothing new. */
  | "monitor-silent"
  /** The monitor works, but does not know, or does not watch it. */
  | "not-observed";

/** A check that is not current. */
export interface Obstacle extends CheckSummary {
  readonly severity: Severity;
}
export interface ExplainedObstacle extends Obstacle {
  /** Of what is unknown; null also before the first answer, which is to be shown as loading. */
  readonly cause: Cause | null;
}

/** Whether every one of the services is current on this chain: nothing is known to stand in the way. */
export declare function canUse<S extends string>(
  report: LiveReport | Unreadable | null | undefined,
  needs: Needs<S>,
): boolean;
/** The checks that stand in the way: whatever is not current. */
export declare function obstaclesOf<S extends string>(
  report: LiveReport | Unreadable | null | undefined,
  needs: Needs<S>,
): Obstacle[];
/** The same with causes; `reportCode` is what is wrong with the last request. */
export declare function explainObstacles<S extends string>(
  report: LiveReport | Unreadable | null | undefined,
  needs: Needs<S> & { readonly reportCode?: FailureCode | null },
): ExplainedObstacle[];

export interface ServiceSummary {
  readonly service: Service;
  readonly status: EffectiveStatus;
  readonly healthy: boolean;
  readonly checks: readonly CheckSummary[];
}

export interface RollUp {
  readonly status: EffectiveStatus;
  readonly healthy: boolean;
  /** The allowlist that was used. */
  readonly chains: readonly number[];
  readonly services: readonly ServiceSummary[];
  readonly counts: Readonly<Record<EffectiveStatus, number>>;
}

export interface RollUpOptions<S extends string = string> extends Clocks {
  /** The client's own list; the launch mainnets by default. */
  readonly chains?: readonly number[];
  /** Exactly these; by default the contract's five and whatever else the report has. */
  readonly services?: readonly ((S & NoLiteral<S>) | KnownNames["name"] | keyof OwnServices)[];
  /** Whether Sepolia counts if it is among the chains. */
  readonly includeTestNetwork?: boolean;
}

/**
 * One status for each service and for all; healthy only if all that is monitored is current (C11). It is for status
 * pages and no gate: what nobody watches does not make it unhealthy, and it looks at every chain. Without `services`,
 * rows of no chain only worsen it. A gate is `canUse`.
 */
export declare function rollUp<S extends string>(
  report: LiveReport | Unreadable | null | undefined,
  options?: RollUpOptions<S>,
): RollUp;

/** `text` is about the `checks`, which are the worst; `others` counts the rest, from worst to best. */
/** What people do with a wallet; null is a service of the operator's own. */
export type Activity = "send" | "balances" | "proofs" | null;
/** What may happen to an activity; "trouble" is of a service of the operator's own. */
export type Effect =
  | "fail"
  | "stop"
  | "refused"
  | "wrong"
  | "trouble"
  | "late"
  | "slow"
  | "unknown"
  | "well"
  | "unwatched";
/** What keeps a reader from knowing: the device's clock, the report that does not come, or what is wrong with it. */
export type Doubt =
  | "ahead"
  | "behind"
  | "offline"
  | "silent"
  | "none"
  | "busy"
  | "unreadable"
  | "refused"
  | "asleep"
  | "stopped"
  | "undated"
  | "future"
  | "own"
  | "rows";

/** By the history: at `at`, or before if the beginning was not `seen`. `lastAt` is when the last of several began. */
export interface Since {
  readonly at: number;
  readonly seen: boolean;
  readonly lastAt: number;
}

/** `unreached`: it gave no usable answer the last time or two, so that it is asked again before it is called down. */
export interface SeenCheck extends CheckSummary {
  readonly unreached: boolean;
}

/** One activity on one network. `bad` are its checks that are watched and not current, the worst first. */
export interface ActivityState {
  readonly activity: Activity;
  readonly service: string;
  readonly status: EffectiveStatus;
  readonly effect: Effect;
  readonly checks: readonly SeenCheck[];
  readonly bad: readonly SeenCheck[];
  readonly since: Since | null;
}

/** A chain, or the operator's own services without one (null). Test networks are not `counted`. */
export interface Network {
  readonly chainId: number | null;
  readonly counted: boolean;
  readonly status: EffectiveStatus;
  readonly checks: readonly SeenCheck[];
  readonly activities: readonly ActivityState[];
}

/** One effect on one activity, on all counted networks where it is so; `until` is the end that a note gives. */
export interface Problem {
  readonly activity: Activity;
  readonly service: string;
  readonly status: EffectiveStatus;
  readonly effect: Effect;
  readonly chainIds: readonly (number | null)[];
  readonly since: Since | null;
  readonly until: number | null;
  /** Nothing is known, but it was asked and gave no usable answer. */
  readonly unreached: boolean;
}

/** The state of a deployment. */
export interface Overview {
  /** The worst that counts: unknown instead of current if in doubt, unmonitored if nothing was current on a chain. */
  readonly status: EffectiveStatus;
  readonly doubts: readonly Doubt[];
  /** In the order of what people do, what is not known last. */
  readonly problems: readonly Problem[];
  readonly networks: readonly Network[];
  /** The worst of each service's checks. */
  readonly services: Readonly<Record<string, EffectiveStatus>>;
  /** Checks on these chains that are not in the report, which are unknown. */
  readonly missing: readonly CheckSummary[];
  readonly nothingReached: boolean;
  /** null without a date. */
  readonly ageMs: number | null;
  readonly now: number;
  readonly about: About;
}

export interface OverviewOptions extends Clocks {
  /** The deployment's description (parseAbout): names, test networks, notes. */
  readonly about?: About;
  /** Without it, it is not said since when. */
  readonly history?: History | null;
  /** The chains that count; all but test networks by default. */
  readonly chains?: readonly number[];
  /** Of the last request. */
  readonly reportCode?: FailureCode | null;
  /** How long ago the last request was answered. */
  readonly answeredAgoMs?: number;
}

/** What people can do on each network, what may go wrong there and since when: what every face shows (C16). */
export declare function overviewOf(report: LiveReport | null, options?: OverviewOptions): Overview;

/** Parts of what is said, without a full stop at their end; empty if there is nothing to say. */
export interface Headline {
  readonly text: string;
  /** The same without networks, for a title. */
  readonly short: string;
  readonly since: string;
  readonly also: string;
  readonly advice: string;
  /** All but the advice. */
  readonly line: string;
  /** The doubt that is the headline. */
  readonly cause: Doubt | null;
  /** The other doubts, in sentences. */
  readonly doubts: readonly string[];
}

/** Texts and names of another language than English. */
export interface Language {
  readonly locale: string;
  text(key: string, slots?: Readonly<Record<string, string | number>>): string;
  chainName(chainId: number): string;
  serviceName(service: string): string;
  instant(at: number, now: number): string;
}

/** An overview in words, in English by default, which say no more than its rows (C16). */
export declare function headlineOf(overview: Overview, language?: Language): Headline;
/** What may happen to an activity, without its name: "may be late". */
export declare function effectWord(overview: Overview, state: ActivityState | Problem, language?: Language): string;

/** What the operator declares about these services and chains, or all of them if the list is empty; instants in ms. */
export interface AboutNote {
  readonly id: string;
  readonly text: string;
  readonly services: readonly string[];
  readonly chains: readonly number[];
  readonly from: number;
  /** null: until it is taken away. */
  readonly until: number | null;
  readonly addedAt: number | null;
}

/** A row that a place sees otherwise than it is published; `since` in ms. */
export interface AboutDissent {
  readonly service: string;
  readonly chainId: number | null;
  readonly status: EffectiveStatus;
  readonly since: number;
}

/** One of the places from which the services are watched, with what it sees otherwise than all of them together. */
export interface AboutPlace {
  /** Empty: the operator's monitor, which has no name. */
  readonly name: string;
  /** Its own page; empty if it has none. */
  readonly url: string;
  /** Whether it is this monitor. */
  readonly own: boolean;
  readonly silentSince: number | null;
  readonly differs: readonly AboutDissent[];
}

/** The public description of a deployment; a text that is empty was not given. */
export interface About {
  readonly readable: true;
  readonly chains: readonly {
    readonly id: number;
    readonly name: string;
    readonly testNetwork: boolean;
    /** Since when no endpoint of the chain has had a newer block, if that is long. */
    readonly noBlockSince: number | null;
  }[];
  /** `effect` is what a service's failure means for users; empty claims nothing. */
  readonly services: readonly {
    readonly name: string;
    readonly title: string;
    readonly runByOthers: boolean;
    readonly effect: string;
  }[];
  readonly title: string;
  readonly operator: string;
  readonly contact: string;
  /** Whether summaries have the checks that nobody watches. */
  readonly showUnmonitored: boolean;
  /** The newest first; leave out those whose `until` has passed. They change nothing of what is measured. */
  readonly notes: readonly AboutNote[];
  /** None: this monitor alone. */
  readonly places: readonly AboutPlace[];
  /** The chains that no summary counts (C11). */
  readonly testNetworks: readonly number[];
}

/** What `/about.json` says; never throws. */
export declare function parseAbout(text: string | Uint8Array): About | Unreadable;
/** The chains that a summary of documents with rows of these chains counts (C11). */
export declare function countedChains(about: About, chainIds: Iterable<number | null>): number[];

export interface Note {
  readonly id: NoteId;
  /** The services that it is about; null for all. */
  readonly services: readonly string[] | null;
  readonly text: string;
}

/** An effective status in a sentence. */
export declare function statusText(effective: EffectiveStatus): string;
/** A reason in a sentence; null for one that this reader does not know: then the status alone counts (C5). */
export declare function reasonText(reason: string | null): string | null;
/** The notes to show beside a service's row, the general ones first (C12). */
export declare function notesFor(service: Service, runByOthers?: boolean | null, places?: number): Note[];
/** How many places see the published status, in a sentence; null if none does, or the row is watched from one. */
export declare function agreementText(metrics: Metrics): string | null;

/** An HTTP answer: its code, its body and the headers that matter, as they were sent. */
export interface Answer {
  readonly problem?: undefined;
  readonly httpCode: number;
  readonly text?: string | Uint8Array;
  readonly etag?: string | null;
  readonly retryAfter?: string | null;
  readonly date?: string | null;
  readonly age?: string | null;
}

/** What is wrong, for programs; the problem beside it is for people. */
export type FailureCode =
  /** The device says that it has no network. */
  | "offline"
  /** No answer, or none that a page may read, such as a 429 without CORS headers. */
  | "no-answer"
  | "timeout"
  | "too-long"
  | "too-many-requests"
  /** The server has no document yet. */
  | "not-available"
  /** A document of another version: this reader is too old for it. */
  | "wrong-version"
  /** No document at all, such as the page of a captive portal. */
  | "unreadable"
  /** Unchanged, but unlike what is held here: a cache in between is broken. */
  | "no-copy"
  /** Any other HTTP code. */
  | "unexpected";

/** A request that came to nothing, and why. */
export interface NoAnswer {
  readonly problem: string;
  /** Without one: "no-answer". */
  readonly code?: FailureCode;
  readonly httpCode?: undefined;
  readonly retryAfter?: undefined;
  readonly date?: undefined;
  readonly age?: undefined;
}

/** The last good document of one endpoint, what has been wrong since, and how long to wait before asking again. */
export interface Feed<D extends LiveReport | History> {
  readonly kind: D extends LiveReport ? "live" : "history";
  readonly everyS: number;
  readonly document: D | null;
  /** Of a report, as it came. */
  readonly bytes: Uint8Array | string | null;
  readonly etag: string | null;
  readonly problem: string | null;
  readonly code: FailureCode | null;
  readonly failures: number;
  readonly waitS: number;
  /** How many documents have come, each unlike the one before: the same one sent again is no arrival. */
  readonly arrivals: number;
  /** When the last of them came, by the reader's clock. */
  readonly arrivedAt: Instant | null;
  readonly clockAheadMs: number | null;
}

/** What is held of an endpoint before anything was asked, for those who make their requests themselves. */
export declare function newFeed(kind: "live", everyS: number): Feed<LiveReport>;
export declare function newFeed(kind: "history", everyS: number): Feed<History>;
/** The feed after an answer; `chance` is random, from 0 to 1 (C9). */
export declare function takeAnswer(
  feed: Feed<LiveReport>,
  answer: Answer | NoAnswer,
  now: Instant,
  chance: number,
): Feed<LiveReport>;
export declare function takeAnswer(
  feed: Feed<History>,
  answer: Answer | NoAnswer,
  now: Instant,
  chance: number,
): Feed<History>;
/** By how much this reader's clock seems to be ahead of the server's. */
export declare function clockAheadMs(answer: Answer | NoAnswer, now: Instant): number | null;
/** Whether the device's clock is known to be wrong, as far as no cache explains it. */
export declare function wrongClock(update: { readonly clockAheadMs: number | null }): "ahead" | "behind" | null;

/**
 * What is known: the last good documents, whatever their age, and what is wrong (C9). It is true only at its time: ask
 * its rows again rather than keep what they came to. Its copies have no `now`, `receivedAgoMs` and `reportBytes`.
 */
export interface Update {
  /** Of the clock, when you read it. */
  readonly now: Instant;
  readonly report: LiveReport | null;
  readonly reportProblem: string | null;
  readonly history: History | null;
  readonly historyProblem: string | null;
  /**
   * By how much the device's clock seems to be ahead of the server's: from the `Date` of an answer. Where a page may
   * not read that, from the reports themselves, and only if the clock is wrong by more than caches explain.
   */
  readonly clockAheadMs: number | null;
  /** Milliseconds since `report` first arrived, by a clock that is never set; null without a report. */
  readonly receivedAgoMs: number | null;
  /** Milliseconds since the last request for the live report ended; null before the first. */
  readonly answeredAgoMs: number | null;
  readonly reportCode: FailureCode | null;
  readonly historyCode: FailureCode | null;
  /** `report` as it came, for a backend that passes it on: text where there are no streams. */
  readonly reportBytes: Uint8Array | string | null;
}

/** The part of a response that is used. */
export interface FetchedResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  /** If it is no stream, `text` is asked for, which lets bytes pass that are no UTF-8. */
  readonly body?: unknown;
  text?(): Promise<string>;
  arrayBuffer?(): Promise<ArrayBuffer>;
}

/** The part of an AbortSignal that is used. */
export interface SignalLike {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}
/** The AbortSignal of the environment, if its types are there. */
export type Signal = typeof globalThis extends { AbortSignal: { prototype: infer S } } ? S : SignalLike;

export interface FetchOptions {
  readonly headers: Record<string, string>;
  readonly credentials: "omit";
  readonly referrerPolicy: "no-referrer";
  /** In a browser: whatever it kept is asked about, and never just taken. */
  readonly cache?: "no-cache";
  readonly signal: Signal;
}

/** The part of a page's `document` that is used. */
export interface Visibility {
  readonly visibilityState: string;
  addEventListener(type: "visibilitychange", listener: () => void): void;
  removeEventListener(type: "visibilitychange", listener: () => void): void;
}

/** The part of a page's `window` that is used. */
export interface Connectivity {
  addEventListener(type: "online" | "pagehide" | "pageshow", listener: () => void): void;
  removeEventListener(type: "online" | "pagehide" | "pageshow", listener: () => void): void;
}

export interface ReaderOptions {
  /** Where Lookout is, such as `https://liveness.example`. */
  readonly baseUrl: string;
  /** The segment of the path that the operator chose. */
  readonly protocol: string;
  /** Seconds between two requests of the live report, at least 15; false to leave it out. 30 by default. */
  readonly live?: number | false;
  /** Seconds between two requests of the history, at least 60; false to leave it out. 120 by default. */
  readonly history?: number | false;
  /** Seconds until a request is given up, from 1 to 60. 10 by default. */
  readonly timeoutS?: number;
  /** Seconds after which `read` and `refresh` give what is known, from 0 to 60. 5 by default. */
  readonly deadlineS?: number;
  /** Who is asking; sent by servers only, since a page may not (C10). */
  readonly userAgent?: string;
  /** Stops the reader when it is aborted. */
  readonly signal?: SignalLike;
  readonly fetch?: (url: string, options: FetchOptions) => Promise<FetchedResponse>;
  readonly now?: () => Instant;
  /** Milliseconds that only ever grow. */
  readonly monotonic?: () => number;
  readonly random?: () => number;
  readonly setTimeout?: (callback: () => void, ms: number) => unknown;
  readonly clearTimeout?: (timer: any) => void;
  /** While it is hidden, nothing is asked. The page's own by default; the README has one for React Native. */
  readonly document?: Visibility;
  /**
   * When it is online again, what has failed is asked for at once, but no faster than the floors (C10) unless nobody
   * was reached; out of the back/forward cache, it is brought up to date. The page's own by default.
   */
  readonly window?: Connectivity;
}

export interface PollOptions extends ReaderOptions {
  /** Called after every answer, and whenever the passing of time changes what a row is worth. */
  readonly onUpdate?: (update: Update) => void;
}

/** Asks while somebody listens. Its functions can be passed on as they are, without the reader. */
export interface Reader {
  /** What is known now. */
  latest(): Update;
  /** The same, but one and the same value until something changes: for React's useSyncExternalStore. */
  getSnapshot(): Update;
  /**
   * Calls the listener after every answer, and whenever the passing of time changes what a row is worth, until the
   * function that it returns is called. The first listener starts the asking, and the last one ends it.
   */
  subscribe(listener: (update: Update) => void): () => void;
  /** Whether every one of the services is current on this chain now. */
  canUse<S extends string>(needs: Needs<S>): boolean;
  /** What stands in the way now, how bad it is, and why it is unknown. */
  obstacles<S extends string>(needs: Needs<S>): ExplainedObstacle[];
  /**
   * Resolved as soon as nothing stands in the way; rejected when the signal is aborted or the reader is stopped. Until
   * then it listens.
   */
  whenUsable<S extends string>(needs: Needs<S>, options?: { readonly signal?: SignalLike }): Promise<void>;
  /**
   * Asks for the live report once, for example when the user taps Send. Within 15 seconds the last answer counts,
   * unless nobody was reached. After `deadlineS` it gives what is known. Its failures do not lengthen the polling.
   */
  read(): Promise<Update>;
  /** Asks for everything now, for example when the user pulls to refresh, as far as the floors allow (C10). */
  refresh(): Promise<Update>;
  /** `receivedAgoMs` as of now, for a page that redraws by itself. */
  receivedAgoMs(): number | null;
  /** Ends it for good: the request under way is given up, and nothing is reported any more. */
  stop(): void;
}
export type Polling = Reader;

/** A reader that is shared by all who listen, and asks for nothing before somebody does (C9, C10). */
export declare function createReader(options: ReaderOptions): Reader;
/** A reader that asks at once, politely, one request at a time, until it is stopped (C9, C10). */
export declare function poll(options: PollOptions): Reader;
