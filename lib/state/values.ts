/**
 * Values of state: what can be stored, and how what JSON lacks is written.
 *
 * `isPlain` tells exactly whether `JSON.stringify` gives a value back unchanged, so that whole columns can be written
 * at once; anything else goes through `tagged`, and what neither can keep (functions, symbols, class instances,
 * accessors, hidden or symbol properties, holes, cycles) is refused rather than quietly changed. A value is a tree:
 * two references to one object come back as two objects, frozen objects come back unfrozen. Not looked for,
 * as it would cost a step a byte or item: names put on bytes, accessors in place of an array's items.
 *
 * Tagged form, version 1: `{"$": tag, "v": …}` for undefined, number (NaN, Infinity, -Infinity, -0), bigint (decimal),
 * bytes and buffer (base64), date (milliseconds or null), map and set (lists), bare (an object without prototype) and
 * object (one that has a key `$` itself), both as pairs. Everything else stands for itself.
 */

/** How deep a value may be nested. */
export const valueDepthMax = 500

/** Why a value cannot be stored, and where in it. */
export class Unstorable extends Error {
  readonly path: string

  constructor(reason: string, path: string) {
    super(reason)
    this.path = path
  }
}

/** True when `JSON.parse(JSON.stringify(value))` is the same value. */
export function isPlain(value: unknown, depth = 0): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true
    case 'number':
      return Number.isFinite(value) && (value !== 0 || 1 / value > 0)
    case 'object':
      if (value === null) return true
      if (depth === valueDepthMax) return false
      return Array.isArray(value) ? isPlainArray(value, depth) : isPlainObject(value, depth)
    default:
      return false
  }
}

function isPlainArray(value: readonly unknown[], depth: number): boolean {
  if (Object.getPrototypeOf(value) !== Array.prototype) return false
  for (let i = 0; i < value.length; i++) if (!isPlain(value[i], depth + 1)) return false
  return Reflect.ownKeys(value).length === value.length + 1
}

function isPlainObject(value: object, depth: number): boolean {
  if (Object.getPrototypeOf(value) !== Object.prototype) return false
  for (const name of Reflect.ownKeys(value)) {
    const property = Object.getOwnPropertyDescriptor(value, name)
    // An accessor has no value, and so counts as undefined, which is not plain.
    if (typeof name === 'symbol' || !property?.enumerable) return false
    if (!isPlain(property.value, depth + 1)) return false
  }
  return true
}

/** The tagged form of a value, ready for `JSON.stringify`. Throws `Unstorable`. */
export function tagged(value: unknown, path = '', depth = 0): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      return isPlain(value) ? value : { $: 'number', v: Object.is(value, -0) ? '-0' : String(value) }
    case 'undefined':
      return { $: 'undefined' }
    case 'bigint':
      return { $: 'bigint', v: String(value) }
    case 'object':
      if (value === null) return null
      if (depth === valueDepthMax) throw new Unstorable(`deeper than ${valueDepthMax} levels, or in a circle`, path)
      return taggedObject(value, path, depth + 1)
    default:
      throw new Unstorable(`a ${typeof value}`, path)
  }
}

function taggedObject(value: object, path: string, depth: number): unknown {
  const prototype = Object.getPrototypeOf(value)
  if (prototype === Array.prototype) return taggedArray(value as unknown[], path, depth)
  if (prototype === Object.prototype || prototype === null) return taggedRecord(value, prototype, path, depth)
  if (prototype === Uint8Array.prototype) return { $: 'bytes', v: Buffer.from(value as Uint8Array).toString('base64') }
  if (prototype === Buffer.prototype) return { $: 'buffer', v: (value as Buffer).toString('base64') }
  const own = Reflect.ownKeys(value)
  switch (own.length > 0 ? null : prototype) {
    case Date.prototype: {
      const time = (value as Date).getTime()
      return { $: 'date', v: Number.isNaN(time) ? null : time }
    }
    case Map.prototype: {
      const pairs = Array.from(value as Map<unknown, unknown>, (pair, i) => taggedArray(pair, `${path}<${i}>`, depth))
      return { $: 'map', v: pairs }
    }
    case Set.prototype:
      return { $: 'set', v: taggedArray([...(value as Set<unknown>)], path, depth) }
    default: {
      const name = prototype.constructor?.name || '(unnamed)'
      throw new Unstorable(`a ${name}${own.length > 0 ? ` with properties (${own.map(String).join(', ')})` : ''}`, path)
    }
  }
}

function taggedArray(value: readonly unknown[], path: string, depth: number): unknown[] {
  if (Reflect.ownKeys(value).length !== value.length + 1) throw new Unstorable('an array with holes or names', path)
  return Array.from(value, (item, i) => {
    if (!Object.hasOwn(value, i)) throw new Unstorable('a hole in an array', `${path}[${i}]`)
    return tagged(item, `${path}[${i}]`, depth)
  })
}

function taggedRecord(value: object, prototype: object | null, path: string, depth: number): unknown {
  const pairs: [string, unknown][] = []
  for (const name of Reflect.ownKeys(value)) {
    const at = `${path}.${String(name)}`
    const property = Object.getOwnPropertyDescriptor(value, name)
    if (typeof name === 'symbol') throw new Unstorable('a property named by a symbol', at)
    if (!property?.enumerable) throw new Unstorable('a property that is not enumerable', at)
    if (!('value' in property)) throw new Unstorable('a getter or setter', at)
    pairs.push([name, tagged(property.value, at, depth)])
  }
  if (prototype === null) return { $: 'bare', v: pairs }
  return Object.hasOwn(value, '$') ? { $: 'object', v: pairs } : Object.fromEntries(pairs)
}

/** The value of a tagged form, which it may take over and change. Throws on a tag that it does not know. */
export function untagged(form: unknown): unknown {
  if (typeof form !== 'object' || form === null) return form
  if (Array.isArray(form)) {
    for (let i = 0; i < form.length; i++) form[i] = untagged(form[i])
    return form
  }
  const record = form as Record<string, unknown>
  if (Object.hasOwn(record, '$')) return untaggedSpecial(record.$, record.v)
  for (const name of Object.keys(record)) record[name] = untagged(record[name])
  return record
}

function untaggedSpecial(tag: unknown, v: unknown): unknown {
  switch (tag) {
    case 'undefined':
      return undefined
    case 'number':
      return Number(v)
    case 'bigint':
      return BigInt(v as string)
    case 'bytes':
      return Uint8Array.from(Buffer.from(v as string, 'base64'))
    case 'buffer':
      return Buffer.from(v as string, 'base64')
    case 'date':
      return new Date(v === null ? Number.NaN : (v as number))
    case 'map':
      return new Map(untagged(v) as [unknown, unknown][])
    case 'set':
      return new Set(untagged(v) as unknown[])
    case 'object':
      return Object.fromEntries(untagged(v) as [string, unknown][])
    case 'bare':
      return Object.setPrototypeOf(Object.fromEntries(untagged(v) as [string, unknown][]), null)
    default:
      throw new TypeError(`unknown tag ${String(tag)}`)
  }
}
