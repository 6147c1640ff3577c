/**
 * Words that say nothing, and the few places where they do say something.
 *
 * Exceptions are data with a reason. A name is split at capitals, digits stay with their word: `baseOffset` has
 * the parts `base` and `offset`, `base64` is one word.
 */

/** Words that may not be a part of a name of ours. */
export const bannedWords = new Set(
  [
    'base common data handle handler handlers handles helper helpers info infos manage manager managers',
    'process processor processors service services util utilities utility utils',
  ].flatMap((line) => line.split(' ')),
)

/** Names in which a banned word has a meaning of its own. */
export const exceptions: readonly { readonly names: RegExp; readonly reason: string }[] = [
  {
    names: /^(set|read|last)?[bB]ase(Offset|Timestamp|Sequence)?s?(Ms|For|OfName)?$/,
    reason: 'fields of the Kafka record batch, as its format calls them',
  },
  {
    names: /^base(File|Bytes|Entries|Chunks|Marker|Share)?$|Base$/,
    reason: 'a snapshot is a base and its deltas; a lane begins with a base marker',
  },
  { names: /[hH]andles?(Max|Of)?$/, reason: 'the noun: what a sink needs back of its staging, or an open file' },
  {
    names: /^(child|worker|broker|this)Process$|^process(Place|Stat|Id)$/,
    reason: 'a process of the operating system',
  },
  {
    names: /^(newM|m|M)etaData$|^dataChange$|^commitInfo$/,
    reason: 'actions of a Delta log, as its protocol calls them',
  },
  { names: /^TreatMissingData$/, reason: 'how an alarm of CloudWatch takes a period without a value' },
  { names: /^processData$/, reason: 'what kafkajs calls the method that takes what arrives on a socket' },
]

/** Files in `epoch/` and `cli/` are verbs; these are the nouns that their rooms are about. */
export const nounFiles = new Set([
  'lib/epoch/cause.ts',
  'lib/epoch/facts.ts',
  'lib/epoch/finding.ts',
  'lib/epoch/job.ts',
  'lib/epoch/machine.ts',
  'lib/epoch/permit.ts',
  'lib/epoch/names.ts',
  'lib/epoch/steps.ts',
  'lib/cli/main.ts',
])

/** First words of file names in `epoch/` and `cli/`. A new verb is added here when it is a word of the field. */
export const verbs = new Set(
  [
    'abort amend await begin claim close collect commit compare consume create decide diagnose drain',
    'estimate execute fail finalize gather heal judge leave list load look observe open operate parse pause plan',
    'precommit price print produce promote read reassign recover register renew report restart resume ring run seal show',
    'simulate split start steer step survey verify wait wake watch write',
  ].flatMap((line) => line.split(' ')),
)
