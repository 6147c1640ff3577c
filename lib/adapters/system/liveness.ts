/**
 * Where this process runs, and whether another one still does: what a launcher on one machine answers
 * `Launcher.status` with.
 */
export { type PlaceStatus, partMark, placeStatus, processPlace } from '../shared/process-place.ts'
