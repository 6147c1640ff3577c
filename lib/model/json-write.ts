/**
 * The writing half of `jsonFields`: flat objects as JSON, straight into a batch.
 *
 * A function is generated for the named fields. It writes what `JSON.stringify` would, byte for byte, and leaves to it
 * whatever is not plain: other fields or another order, a prototype, text that needs escapes or is not ASCII, values that
 * are neither number nor text. Property tests hold both together. Never writes past the end of the buffer.
 */

/** Writes the value's JSON at `at`, answers with its end; -1: it is left to `JSON.stringify`. */
export type JsonWrite = (value: unknown, into: Buffer, at: number) => number

/** Longest text of a number: `-0.0000012345678901234567`. */
const numberBytesMax = 25

/** Compiles the function for objects that have these fields, in this order. */
export function jsonWriter(fields: Readonly<Record<string, 'number' | 'string'>>): JsonWrite {
  const names = Object.keys(fields)
  let bytesMax = 2
  const steps = names.map((name, at) => {
    const before = [...Buffer.from(`${at === 0 ? '{' : ','}${JSON.stringify(name)}:`)]
    bytesMax += before.length + numberBytesMax
    const value = `v[${JSON.stringify(name)}]`
    return `${before.map((byte, i) => `b[at + ${i}] = ${byte}`).join('\n')}
at = ${fields[name] === 'number' ? 'number' : 'text'}(${value}, b, at + ${before.length}, bytesMax)
if (at < 0) return -1`
  })
  const body = `return (v, b, at) => {
if (typeof v !== 'object' || v === null || prototypeOf(v) !== plain || v.toJSON !== undefined) return -1
let i = 0
for (const name in v) if (name !== names[i++]) return -1
if (i !== ${names.length} || at + bytesMax > b.length) return -1
${names.length === 0 ? 'b[at++] = 123' : steps.join('\n')}
b[at] = 125
return at + 1
}`
  const given = { names, bytesMax, number: writeNumber, text: writeText, prototypeOf: Object.getPrototypeOf }
  return new Function(...Object.keys(given), 'plain', body)(...Object.values(given), Object.prototype) as JsonWrite
}

/** In what the loop does not write there must be room for `rest` bytes. */
function writeText(value: unknown, into: Buffer, start: number, rest: number): number {
  if (typeof value !== 'string' || start + value.length + rest > into.length) return -1
  let at = start
  into[at++] = 34
  for (let i = 0; i < value.length; i++) {
    const unit = value.charCodeAt(i)
    if (unit < 32 || unit > 126 || unit === 34 || unit === 92) return -1
    into[at++] = unit
  }
  into[at] = 34
  return at + 1
}

function writeNumber(value: unknown, into: Buffer, start: number, rest: number): number {
  if (typeof value !== 'number' || start + rest > into.length) return -1
  let at = start
  let size = value
  if (value < 0) {
    into[at++] = 45
    size = -value
  }
  if (size === (size | 0)) return writeDigits(size | 0, into, at)
  if (size <= Number.MAX_SAFE_INTEGER && Math.floor(size) === size) return writeWhole(size, into, at)
  return writeDecimal(size, into, at) || writeAscii(Number.isFinite(value) ? String(value) : 'null', into, start)
}

/** A whole number of at most 16 digits. */
function writeWhole(value: number, into: Buffer, start: number): number {
  const high = Math.floor(value / 1e9)
  const low = value - high * 1e9
  if (high === 0) return writeDigits(low | 0, into, start)
  return writePadded(low | 0, 9, into, writeDigits(high | 0, into, start))
}

/**
 * A number below 10^9 with up to six decimals; 0 when it has more. At most 15 digits then make the number, and no other
 * text of as few digits does: it is the shortest, which is what `String` gives.
 */
function writeDecimal(value: number, into: Buffer, start: number): number {
  if (!(value < 1e9)) return 0
  let decimals = 3
  let scaled = Math.round(value * 1e3)
  if (scaled / 1e3 !== value) {
    decimals = 6
    scaled = Math.round(value * 1e6)
    if (scaled / 1e6 !== value) return 0
  }
  const scale = decimals === 3 ? 1e3 : 1e6
  const whole = Math.floor(scaled / scale)
  let fraction = (scaled - whole * scale) | 0
  for (; fraction % 10 === 0; fraction = (fraction / 10) | 0) decimals--
  const point = writeDigits(whole | 0, into, start)
  into[point] = 46
  return writePadded(fraction, decimals, into, point + 1)
}

function writeDigits(value: number, into: Buffer, start: number): number {
  let digits = 1
  for (let power = 10; digits < 10 && value >= power; power *= 10) digits++
  return writePadded(value, digits, into, start)
}

function writePadded(value: number, digits: number, into: Buffer, start: number): number {
  let rest = value | 0
  for (let at = start + digits - 1; at >= start; at--) {
    const tenth = (rest / 10) | 0
    into[at] = 48 + rest - 10 * tenth
    rest = tenth
  }
  return start + digits
}

function writeAscii(text: string, into: Buffer, start: number): number {
  for (let i = 0; i < text.length; i++) into[start + i] = text.charCodeAt(i)
  return start + text.length
}
