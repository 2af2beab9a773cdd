import type { ExplainedObstacle, Needs, Reader } from "./index.js";

/**
 * What stands in the way, as of each rendering; the reader polls while the component is mounted. Show `isLoading` as
 * such: nothing was answered yet.
 */
export declare function useObstacles<S extends string>(
  reader: Pick<Reader, "subscribe" | "getSnapshot" | "obstacles">,
  needs: Needs<S>,
): { readonly isLoading: boolean; readonly obstacles: ExplainedObstacle[] };

/** For `useQuery` of TanStack Query, whose `data` are the obstacles. */
export declare function obstaclesQuery<S extends string>(
  reader: Pick<Reader, "read" | "getSnapshot" | "obstacles">,
  needs: Needs<S>,
): {
  queryKey: (string | number)[];
  queryFn: () => Promise<number>;
  select: () => ExplainedObstacle[];
  networkMode: "always";
  refetchInterval: number;
  refetchIntervalInBackground: boolean;
  staleTime: number;
  gcTime: number;
  retry: false;
};
