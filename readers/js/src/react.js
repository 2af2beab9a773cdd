// A reader in React.

import { useSyncExternalStore } from "react";
import { explainObstacles } from "./cause.js";

const LOADING = /* @__PURE__ */ Object.freeze({ report: null, reportProblem: null });

/** What stands in the way, as of each rendering. A server renders that it is loading, and a browser at first, too. */
export function useObstacles(reader, needs) {
  const update = useSyncExternalStore(reader.subscribe, reader.getSnapshot, () => LOADING);
  const isLoading = update.report === null && update.reportProblem === null;
  return { isLoading, obstacles: isLoading ? explainObstacles(null, needs) : reader.obstacles(needs) };
}

/**
 * The options of a query of TanStack Query. What the query keeps is only when it was last asked: the obstacles are the
 * reader's at each rendering, so that neither pausing offline nor a stored query shows old ones.
 */
export function obstaclesQuery(reader, needs) {
  return {
    queryKey: ["lookout", needs.chain, ...needs.services],
    async queryFn() {
      const { report, reportProblem } = reader.getSnapshot();
      const isHidden = globalThis.document?.visibilityState === "hidden";
      if (!isHidden) {
        const reading = reader.read();
        if (report === null && reportProblem === null) await reading;
      }
      return Date.now();
    },
    select: () => reader.obstacles(needs),
    networkMode: "always",
    refetchInterval: 5_000,
    refetchIntervalInBackground: true,
    staleTime: 0,
    gcTime: 0,
    retry: false,
  };
}
