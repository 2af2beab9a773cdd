export { parseReport, effectiveStatus, findRow, canUse, obstaclesOf } from "./index.js"
