/**
 * Lines for the demo: words drawn as in a real language, few of them often and many of them rarely (Zipf's law).
 *
 * The same seed gives the same lines. What was drawn is counted here, by the simplest means there are: this is the
 * independent count that the output is held against at the end.
 */

const frequentWords = `the of and to a in that is was he for it with as his on be at by i this had not are but from or
  have an they which one you were her all she there would their we him been has when who will more no if out so said
  what up its about into than them can only other new some could time these two may then do first any my now such
  like our over man me even most made after also did many before must through`.split(/\s+/)

const [onsets, vowels, codas] = ['b d f g k l m n p r s t v z br dr gr st tr', 'a e i o u', 'l m n r s t x'].map(
  (sounds) => sounds.split(' '),
)

/** A stream of lines with the count of what it gave so far. */
export interface LineStream {
  /** The next `count` lines, each with its newline. */
  take(count: number): string
  /** How often each word was drawn. */
  readonly counts: ReadonlyMap<string, number>
}

/** Lines of three to eight words out of `vocabularySize`. */
export function lineStream(seed: number, vocabularySize = 3000): LineStream {
  const random = mulberry32(seed)
  const vocabulary = vocabularyOf(vocabularySize, random)
  const reach = cumulative(vocabulary.map((_, rank) => 1 / (rank + 2.7)))
  const counts = new Map<string, number>()
  const word = () => {
    const drawn = vocabulary[firstAtLeast(reach, random() * reach[reach.length - 1])]
    counts.set(drawn, (counts.get(drawn) ?? 0) + 1)
    return drawn
  }
  const line = () => `${Array.from({ length: 3 + Math.floor(random() * 6) }, word).join(' ')}\n`
  return { counts, take: (count) => Array.from({ length: count }, line).join('') }
}

function vocabularyOf(size: number, random: () => number): string[] {
  const words = new Set(frequentWords)
  const pick = (sounds: readonly string[]) => sounds[Math.floor(random() * sounds.length)]
  const syllable = () => pick(onsets) + pick(vowels)
  while (words.size < size) words.add(syllable() + syllable() + (random() < 0.5 ? pick(codas) : syllable()))
  return [...words].slice(0, size)
}

function cumulative(weights: readonly number[]): number[] {
  let sum = 0
  return weights.map((weight) => {
    sum += weight
    return sum
  })
}

/** Index of the first number that is at least `wanted`; the numbers rise. */
function firstAtLeast(numbers: readonly number[], wanted: number): number {
  let [low, high] = [0, numbers.length - 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if (numbers[middle] < wanted) low = middle + 1
    else high = middle
  }
  return low
}

/** Numbers in [0, 1) from a seed. Source: Tommy Ettinger, mulberry32 (2017), public domain. */
function mulberry32(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
