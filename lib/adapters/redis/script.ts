/**
 * The one script that promotes a lane: marker tested, rows written, marker moved.
 *
 * Redis runs a script alone, and an append-only file holds all of its effects or none. KEYS are the marker and the
 * keys that are written; ARGV are the marker that must be there, the one that is left, and the rows. Whatever can
 * be refused is refused before the first write, since Redis undoes nothing. Answers `{1}`, or `{0, found}`.
 */

/** How rows appear in Redis. */
export type RedisType = 'hash' | 'string' | 'set' | 'sorted-set' | 'stream'

const writes: Readonly<Record<RedisType, string>> = {
  // op, field, value
  hash: `for i = 3, #ARGV, 3 do
    if ARGV[i] == '1' then redis.call('HSET', KEYS[2], ARGV[i + 1], ARGV[i + 2])
    else redis.call('HDEL', KEYS[2], ARGV[i + 1]) end
  end`,
  // op, value; the key is KEYS[n + 1]
  string: `for i = 3, #ARGV, 2 do
    local key = KEYS[(i + 1) / 2]
    if ARGV[i] == '1' then redis.call('SET', key, ARGV[i + 1]) else redis.call('DEL', key) end
  end`,
  // op, member
  set: `for i = 3, #ARGV, 2 do
    redis.call(ARGV[i] == '1' and 'SADD' or 'SREM', KEYS[2], ARGV[i + 1])
  end`,
  // op, member, score
  'sorted-set': `for i = 3, #ARGV, 3 do
    if ARGV[i] == '1' then redis.call('ZADD', KEYS[2], ARGV[i + 2], ARGV[i + 1])
    else redis.call('ZREM', KEYS[2], ARGV[i + 1]) end
  end`,
  // which of key and value there are, key, value, timestamp
  stream: `for i = 3, #ARGV, 4 do
    local fields = {'timestampMs', ARGV[i + 3]}
    if ARGV[i] == '1' or ARGV[i] == '3' then fields[#fields + 1] = 'key'; fields[#fields + 1] = ARGV[i + 1] end
    if ARGV[i] == '2' or ARGV[i] == '3' then fields[#fields + 1] = 'value'; fields[#fields + 1] = ARGV[i + 2] end
    redis.call('XADD', KEYS[2], '*', unpack(fields))
  end`,
}

const typeNames: Readonly<Record<RedisType, string>> = {
  hash: 'hash',
  string: 'string',
  set: 'set',
  'sorted-set': 'zset',
  stream: 'stream',
}

/** Replaces a marker by another, or by none, if it is the one expected (ARGV 1 and 2; empty for none). */
export const reassignScript = `local found = redis.call('GET', KEYS[1])
if (found or '') ~= ARGV[1] then return found end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2]) end
return redis.call('GET', KEYS[1])`

/** The script for a type. */
export function promoteScript(type: RedisType): string {
  const check =
    type === 'string'
      ? ''
      : `local kind = redis.call('TYPE', KEYS[2]).ok
if kind ~= 'none' and kind ~= '${typeNames[type]}' then
  return redis.error_reply('WRONGTYPE key ' .. KEYS[2] .. ' is a ' .. kind .. ', not a ${typeNames[type]}')
end`
  return `local found = redis.call('GET', KEYS[1])
if found ~= ARGV[1] then return {0, found} end
${check}
${writes[type]}
redis.call('SET', KEYS[1], ARGV[2])
return {1}`
}
