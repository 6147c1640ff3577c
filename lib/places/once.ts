/**
 * Sources and sinks of a place: opened once, kept, closed together.
 *
 * What fails to open is forgotten, so that the next who asks tries again.
 */

/** What has been opened so far, or is being opened, by name. */
export type Opened<T> = Map<string, Promise<T>>

/** The one that is open under this name, else a new one. */
export function once<T>(opened: Opened<T>, name: string, open: () => Promise<T>): Promise<T> {
  const found = opened.get(name)
  if (found) return found
  const opening = open()
  opened.set(name, opening)
  opening.catch(() => opened.delete(name))
  return opening
}

/** Closes whatever was opened. */
export async function closeAll(...all: readonly Opened<{ close(): Promise<void> }>[]): Promise<void> {
  const settled = await Promise.allSettled(all.flatMap((opened) => [...opened.values()]))
  for (const one of settled) if (one.status === 'fulfilled') await one.value.close()
}
