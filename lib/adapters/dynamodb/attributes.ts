/**
 * From a value of the pipeline to an attribute of DynamoDB, exactly, and what it weighs.
 *
 * `undefined` leaves an attribute out, `null` is NULL. Whatever DynamoDB could only hold changed (half a surrogate
 * pair, more than 38 digits, an invalid date, a Set whose order is lost) is refused here, where its record can still be
 * rejected alone. Source: "Naming rules and data types" and "Item sizes and formats" of its developer guide.
 */
import { PawlError } from '../../model/errors.ts'

/** An attribute as the service takes it, and as JSON with base64 in place of bytes. */
export type Attribute =
  | { readonly S: string }
  | { readonly N: string }
  | { readonly B: Uint8Array }
  | { readonly BOOL: boolean }
  | { readonly NULL: true }
  | { readonly L: readonly Attribute[] }
  | { readonly M: AttributeMap }

/** Attributes by name. */
export type AttributeMap = Readonly<Record<string, Attribute>>

/** A number of up to 38 digits, kept as it is written; see `decimal`. */
export class Decimal {
  /** Digits without leading and trailing zeros, and a power of ten. */
  readonly text: string

  constructor(text: string) {
    this.text = canonical(text, '')
  }
}

/** A number that no double holds exactly, for attributes of type N: `decimal('1234567890.0123456789')`. Throws `ENCODE_FAILED`. */
export function decimal(text: string): Decimal {
  return new Decimal(text)
}

/** Nested lists and maps that DynamoDB takes. */
const depthMax = 32
const digitsMax = 38
const numberForm = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,4}))?$/

/** One form a number, so that equal keys have equal texts. */
function canonical(text: string, path: string): string {
  const [, sign, whole = '', part = '', power = '0'] = numberForm.exec(text) ?? []
  const all = whole + part
  if (sign === undefined || all === '') throw refused(path, `${JSON.stringify(text.slice(0, 50))} is no number`)
  const digits = all.replace(/^0+/, '')
  const kept = digits.replace(/0+$/, '')
  if (kept === '') return '0'
  const exponent = Number(power) - part.length + (digits.length - kept.length)
  const magnitude = exponent + kept.length - 1
  if (kept.length > digitsMax) throw refused(path, `${text} has more than ${digitsMax} digits`)
  if (magnitude > 125 || magnitude < -130) throw refused(path, `${text} is beyond the numbers of DynamoDB`)
  return `${sign === '-' ? '-' : ''}${kept}${exponent === 0 ? '' : `E${exponent}`}`
}

function refused(path: string, fault: string): PawlError {
  return new PawlError('ENCODE_FAILED', path === '' ? fault : `attribute ${path}: ${fault}`, { attribute: path })
}

/** The attribute of a value; null where it is left out. Throws `ENCODE_FAILED`, naming the path. */
export function attributeOf(value: unknown, path: string, depth = 0): Attribute | null {
  switch (typeof value) {
    case 'undefined':
      return null
    case 'string':
      if (!value.isWellFormed()) throw refused(path, 'the text has a surrogate without its partner')
      return { S: value }
    case 'bigint':
      return { N: canonical(value.toString(), path) }
    case 'number':
      if (!Number.isFinite(value)) throw refused(path, `${value} has no form in DynamoDB`)
      return { N: canonical(String(value), path) }
    case 'boolean':
      return { BOOL: value }
    case 'object':
      return value === null ? { NULL: true } : objectAt(value, path, depth)
    default:
      throw refused(path, `a ${typeof value} has no form in DynamoDB`)
  }
}

function objectAt(value: object, path: string, depth: number): Attribute {
  if (depth >= depthMax) throw refused(path, `it lies deeper than ${depthMax} levels`)
  if (value instanceof Decimal) return { N: value.text }
  // A Buffer would turn itself into an object of numbers in JSON.
  if (value instanceof Uint8Array) return { B: new Uint8Array(value.buffer, value.byteOffset, value.byteLength) }
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) throw refused(path, 'the date is invalid')
    return { S: value.toISOString() }
  }
  if (value instanceof Set) throw refused(path, 'a Set is refused, since DynamoDB keeps no order in it: give an array')
  if (Array.isArray(value)) return { L: value.map((one, index) => elementAt(one, `${path}[${index}]`, depth)) }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) {
    throw refused(path, `a ${value.constructor?.name ?? 'strange object'} has no form in DynamoDB`)
  }
  return { M: attributesOf(value as Readonly<Record<string, unknown>>, path, depth + 1) }
}

function elementAt(value: unknown, path: string, depth: number): Attribute {
  const made = attributeOf(value, path, depth + 1)
  if (made === null) throw refused(path, 'an element of a list is undefined')
  return made
}

/** Attributes of an object's members. Throws `ENCODE_FAILED`. */
export function attributesOf(value: Readonly<Record<string, unknown>>, path: string, depth = 0): AttributeMap {
  const made: Record<string, Attribute> = Object.create(null)
  for (const name in value) {
    const attribute = attributeOf(value[name], path === '' ? name : `${path}.${name}`, depth)
    if (attribute !== null) made[name] = attribute
  }
  return made
}

/** Bytes of attributes as DynamoDB counts them; numbers are an upper estimate. */
export function bytesOf(attributes: AttributeMap): number {
  let bytes = 0
  for (const name in attributes) bytes += Buffer.byteLength(name) + valueBytes(attributes[name]!)
  return bytes
}

function valueBytes(value: Attribute): number {
  if ('S' in value) return Buffer.byteLength(value.S)
  if ('N' in value) return Math.ceil(value.N.length / 2) + 2
  if ('B' in value) return value.B.length
  if ('L' in value) return value.L.reduce((bytes, one) => bytes + 1 + valueBytes(one), 3)
  if ('M' in value) return 3 + Object.keys(value.M).length + bytesOf(value.M)
  return 1
}

/** Attributes as JSON; bytes as base64. */
export function attributesText(attributes: AttributeMap): string {
  return JSON.stringify(attributes, (name, value) =>
    name === 'B' && value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value,
  )
}

/** Attributes of the JSON that `attributesText` makes. */
export function parseAttributes(text: string): AttributeMap {
  return JSON.parse(text, reviveBytes) as AttributeMap
}

/** The member `B` of an attribute is text; an attribute of that name is an object. A Buffer would not become text again. */
function reviveBytes(name: string, value: unknown): unknown {
  return name === 'B' && typeof value === 'string' ? new Uint8Array(Buffer.from(value, 'base64')) : value
}
