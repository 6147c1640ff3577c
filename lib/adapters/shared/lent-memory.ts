/**
 * Large buffers that are used again: answers of brokers, staged batches, staged objects read back.
 *
 * Fresh memory costs page faults, and the collector runs for every few dozen megabytes that lie outside its heap, however
 * little is in it. So whoever knows that nobody looks at a buffer any more gives it back. Giving back is never needed: what
 * is not given back is collected as ever, what was not lent is left alone. A lent buffer holds what its last user left.
 */

/** Below, the allocator is as fast. */
const lentBytesMin = 64 * 1024
/** Sizes are rounded up to this, so that similar ones fit each other. */
const grainBytes = 128 * 1024
/** What lies here unused at most; the oldest goes first. */
const idleBytesMax = 16 * 1024 * 1024

const lent = new WeakMap<ArrayBufferLike, Buffer>()
let idle: Buffer[] = []
let idleBytes = 0

/** A buffer of so many bytes, contents undefined, for its user alone until it is given back. */
export function lend(bytes: number): Buffer {
  if (bytes < lentBytesMin) return Buffer.allocUnsafe(bytes)
  const whole = takeIdle(bytes) ?? Buffer.allocUnsafeSlow(Math.ceil(bytes / grainBytes) * grainBytes)
  lent.set(whole.buffer, whole)
  return whole.subarray(0, bytes)
}

/** Gives the memory of a lent buffer back, by any view of it. No view may be used afterwards. */
export function giveBack(view: Uint8Array): void {
  const whole = lent.get(view.buffer)
  if (whole === undefined) return
  lent.delete(whole.buffer)
  idle.push(whole)
  idleBytes += whole.length
  while (idleBytes > idleBytesMax) idleBytes -= idle.shift()!.length
}

/** The smallest that is large enough, and not much too large. */
function takeIdle(bytes: number): Buffer | null {
  let best: Buffer | null = null
  for (const one of idle)
    if (one.length >= bytes && one.length <= 2 * bytes + grainBytes && one.length < (best?.length ?? Infinity))
      best = one
  if (best === null) return null
  idle = idle.filter((one) => one !== best)
  idleBytes -= best.length
  return best
}
