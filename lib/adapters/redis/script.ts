/**
 * The one script that promotes a lane: marker tested, rows written, marker moved.
 *
 * Redis runs a script alone, and an append-only file holds all of its effects or none. KEYS are the marker, the hash
 * of refused rows, and the keys that are written; ARGV are the marker that must be there, the one that is left, how
 * many refused rows to record, id and text of each, and the rows. Whatever can be refused is refused before the first
 * write, since Redis undoes nothing: a key of another type, commands that the user may not send (Redis 7; before it,
 * nobody can ask), a stream whose ids are used up. Memory, replicas and disk are looked at by Redis before a script's
 * first write, and not again. Answers `{1}`, `{0, found}`, or `{2, {row, kind, …}}` for rows whose key holds something
 * else. Two tries of one epoch must write the same commands: see `idsOfStream`.
 */
import { limits } from '../../model/limits.ts'

/** How rows appear in Redis. */
export type RedisType = 'hash' | 'string' | 'set' | 'sorted-set' | 'stream'

const writes: Readonly<Record<RedisType, string>> = {
  // op, field, value
  hash: `for i = first, #ARGV, 3 do
    if ARGV[i] == '1' then redis.call('HSET', KEYS[3], ARGV[i + 1], ARGV[i + 2])
    else redis.call('HDEL', KEYS[3], ARGV[i + 1]) end
  end`,
  // op, value; each row has a key of its own
  string: `for i = first, #ARGV, 2 do
    local key = KEYS[3 + (i - first) / 2]
    if ARGV[i] == '1' then redis.call('SET', key, ARGV[i + 1]) else redis.call('DEL', key) end
  end`,
  // op, member
  set: `for i = first, #ARGV, 2 do
    redis.call(ARGV[i] == '1' and 'SADD' or 'SREM', KEYS[3], ARGV[i + 1])
  end`,
  // op, member, score
  'sorted-set': `for i = first, #ARGV, 3 do
    if ARGV[i] == '1' then redis.call('ZADD', KEYS[3], ARGV[i + 2], ARGV[i + 1])
    else redis.call('ZREM', KEYS[3], ARGV[i + 1]) end
  end`,
  // first the time when it was staged, then which of key and value there are, key, value, timestamp
  stream: `for i = first + 1, #ARGV, 4 do
    local fields = {'timestampMs', ARGV[i + 3]}
    if ARGV[i] == '1' or ARGV[i] == '3' then fields[#fields + 1] = 'key'; fields[#fields + 1] = ARGV[i + 1] end
    if ARGV[i] == '2' or ARGV[i] == '3' then fields[#fields + 1] = 'value'; fields[#fields + 1] = ARGV[i + 2] end
    seq = seq + 1
    redis.call('XADD', KEYS[3], string.format('%s-%.0f', ms, seq), unpack(fields))
  end`,
}

const typeNames: Readonly<Record<Exclude<RedisType, 'string'>, string>> = {
  hash: 'hash',
  set: 'set',
  'sorted-set': 'zset',
  stream: 'stream',
}

/** What each type sends, with as many arguments as Redis wants for it. */
const commands: Readonly<Record<RedisType, string>> = {
  hash: "{'HSET', KEYS[3], '', ''}, {'HDEL', KEYS[3], ''}",
  string: "{'SET', KEYS[3] or KEYS[1], ''}, {'DEL', KEYS[3] or KEYS[1]}",
  set: "{'SADD', KEYS[3], ''}, {'SREM', KEYS[3], ''}",
  'sorted-set': "{'ZADD', KEYS[3], '0', ''}, {'ZREM', KEYS[3], ''}",
  stream: "{'XADD', KEYS[3], '*', '', ''}, {'XINFO', 'STREAM', KEYS[3]}",
}

const mayAll = (type: RedisType) => `if redis.acl_check_cmd then
  for _, command in ipairs({${commands[type]}, {'HSET', KEYS[2], '', ''}, {'SET', KEYS[1], ''}}) do
    if not redis.acl_check_cmd(unpack(command)) then
      return redis.error_reply('NOPERM the user may not send ' .. command[1] .. ' for ' .. command[2])
    end
  end
end`

/**
 * Ids that follow from the stream and the time of staging alone, so that another try of an epoch gives its entries the
 * same ones. A Redis that dies while it writes its log leaves the beginning of a transaction there, which counts for
 * nothing at its next start and, since what comes after it ends with EXEC, for something at the one after that: then
 * entries that have their ids already are refused, in place of being there twice.
 */
const idsOfStream = `local ms, seq = ARGV[first], -1
local info = redis.pcall('XINFO', 'STREAM', KEYS[3])
if info.err and kind ~= 'none' then return info end
for i = 1, info.err and 0 or #info, 2 do
  if info[i] == 'last-generated-id' then
    local lastMs, lastSeq = string.match(info[i + 1], '(%d+)-(%d+)')
    if #lastMs > #ms or (#lastMs == #ms and lastMs >= ms) then ms, seq = lastMs, tonumber(lastSeq) end
  end
end
if seq + #ARGV > 9007199254740992 then
  return redis.error_reply('WRONGTYPE the ids of stream ' .. KEYS[3] .. ' are used up')
end`

/** Replaces a marker by another, or by none, if it is the one expected (ARGV 1 and 2; empty for none). */
export const reassignScript = `local found = redis.call('GET', KEYS[1])
if (found or '') ~= ARGV[1] then return found end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2]) end
return redis.call('GET', KEYS[1])`

/** Of many keys each may hold something else, which concerns that row alone; more than a few end the look. */
const checkEach = `local others = {}
for i = first, #ARGV, 2 do
  local row = (i - first) / 2
  local length = redis.pcall('STRLEN', KEYS[3 + row])
  if type(length) == 'table' then
    local kind = redis.call('TYPE', KEYS[3 + row]).ok
    if kind == 'string' or kind == 'none' then return length end
    others[#others + 1] = row
    others[#others + 1] = kind
    if #others > ${2 * limits.refusedPerPromotionMax} then break end
  end
end
if #others > 0 then return {2, others} end`

function checkOne(type: Exclude<RedisType, 'string'>): string {
  return `local kind = redis.call('TYPE', KEYS[3]).ok
if kind ~= 'none' and kind ~= '${typeNames[type]}' then
  return redis.error_reply('WRONGTYPE key ' .. KEYS[3] .. ' is a ' .. kind .. ', not a ${typeNames[type]}')
end`
}

/** The script for a type. */
export function promoteScript(type: RedisType): string {
  return `local found = redis.call('GET', KEYS[1])
if found ~= ARGV[1] then return {0, found} end
local first = 4 + 2 * ARGV[3]
${type === 'string' ? checkEach : checkOne(type)}
${mayAll(type)}
${type === 'stream' ? idsOfStream : ''}
${writes[type]}
for i = 4, first - 1, 2 do redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) end
redis.call('SET', KEYS[1], ARGV[2])
return {1}`
}
