/**
 * Which partition a key belongs to, exactly as the Java client's default partitioner says.
 *
 * MurmurHash2 with Kafka's seed (org.apache.kafka.common.utils.Utils.murmur2), the sign bit masked off (not
 * `>>> 0`, which is another partition), modulo the number of partitions. Streams that are joined by key rely on
 * every producer agreeing.
 */

const seed = 0x9747b28c
const multiplier = 0x5bd1e995

/** MurmurHash2 of bytes `[start, end)`, as a signed 32-bit number. */
export function murmur2(bytes: Uint8Array, start = 0, end = bytes.length): number {
  let hash = seed ^ (end - start)
  let i = start
  for (; end - i >= 4; i += 4) {
    let k = bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24)
    k = Math.imul(k, multiplier)
    k ^= k >>> 24
    hash = Math.imul(hash, multiplier) ^ Math.imul(k, multiplier)
  }
  const rest = end - i
  if (rest > 2) hash ^= bytes[i + 2] << 16
  if (rest > 1) hash ^= bytes[i + 1] << 8
  if (rest > 0) hash = Math.imul(hash ^ bytes[i], multiplier)
  hash = Math.imul(hash ^ (hash >>> 13), multiplier)
  return hash ^ (hash >>> 15)
}

/** The partition, from 0, of a key that is not null. */
export function partitionOf(key: Uint8Array, partitions: number): number {
  return (murmur2(key) & 0x7fffffff) % partitions
}
