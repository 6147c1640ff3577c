/**
 * `pawl doctor`: checks everything that a pipeline stands on, and says how to mend each fault.
 *
 * A deployment is looked at from inside its network, by its own function with rights to look and no others; a file at
 * a directory in this process.
 */
import type { Finding } from '../epoch/diagnose.ts'
import { PawlError } from '../model/errors.ts'
import { clusterNotes, clusterOf, clusterOptions, defaultStage, kafkaOptionsOf } from './load-cluster.ts'
import { directoryOf } from './open-directory.ts'
import { type Call, type Command, misused, placeOptions } from './parse-arguments.ts'
import { exitCodes } from './report-error.ts'
import { type Style, styled } from './write-output.ts'

/** `pawl doctor [FILE]`. */
export const doctorCommand: Command = {
  name: 'doctor',
  summary: 'check brokers, rights, clocks, quotas and markers, and say how to mend them',
  positionals: ['[FILE]'],
  options: {
    ...placeOptions,
    pipeline: { value: 'ID', help: 'which pipeline of the stack; may be left out when there is one' },
    export: { value: 'NAME', help: 'export of the file; default by default' },
    ...clusterOptions,
  },
  notes: [...clusterNotes, 'exit code 1 when a check fails; it only reads, and may run beside the pipeline'],
  examples: [
    'pawl doctor --stack my-stack',
    'pawl doctor totals.ts --bootstrap 127.0.0.1:9092',
    'pawl doctor --stack my-stack --json',
  ],
  run: async (call) => {
    const findings = call.options.text('stack') === undefined ? await diagnoseHere(call) : await diagnoseThere(call)
    return report(call, findings)
  },
}

async function diagnoseThere({ options }: Call): Promise<readonly Finding[]> {
  const stack = options.text('stack') ?? ''
  const { openDeployment } = await import('../places/stack.ts')
  const { doctor, stateMachineArn, trigger, close } = await openDeployment(stack, options.text('pipeline'))
  await close()
  if (doctor === null)
    throw new PawlError('AWS_RESOURCE_MISSING', `stack ${stack} has no doctor: deploy it again`, { stack })
  const { invokeFunction } = await import('../adapters/lambda/functions.ts')
  return (await invokeFunction(doctor, { stateMachineArn, trigger })) as readonly Finding[]
}

/** How long brokers may take to answer before they count as gone. */
const patienceMs = 5000

async function diagnoseHere(call: Call): Promise<readonly Finding[]> {
  const [file] = call.positionals
  if (file === undefined) throw misused(doctorCommand, 'name a FILE or a --stack')
  const [{ loadPipeline }, { openPlace }, { diagnose }, { StateCache }] = await Promise.all([
    import('../places/load.ts'),
    import('../places/embedded.ts'),
    import('../epoch/diagnose.ts'),
    import('../state/cache.ts'),
  ])
  const compiled = await loadPipeline(file, call.options.text('export'))
  const kafkaOptions = kafkaOptionsOf(call)
  const cluster = await clusterOf(
    kafkaOptions && { ...kafkaOptions, patienceMs: kafkaOptions.patienceMs ?? patienceMs },
  )
  const stage = call.options.text('stage') ?? defaultStage
  const place = await openPlace({
    directory: directoryOf(call.options),
    cluster,
    stage,
    telemetry: { emit: () => undefined },
  })
  try {
    const job = { compiled, place, states: new StateCache(), warm: new Map() }
    return await diagnose({ job, cluster, stage, surroundings: null })
  } finally {
    await place.close()
  }
}

function report({ output }: Call, findings: readonly Finding[]): number {
  const of = (level: Finding['level']) => findings.filter((finding) => finding.level === level).length
  output.record({ failed: of('fail'), warned: of('warn'), findings })
  const style = output.style()
  const faults = `${of('fail')} failed, ${of('warn')} to watch, ${of('ok')} well`
  output.print([...findings.flatMap((finding) => linesOf(finding, style)), '', faults])
  return of('fail') === 0 ? exitCodes.success : exitCodes.failure
}

function linesOf({ check, level, text, mend, code }: Finding, style: Style): string[] {
  const hue = { ok: 'green', warn: 'yellow', fail: 'red' } as const
  const known = code === null || text.startsWith(code) ? '' : `${code}: `
  const line = `${styled(style, hue[level], level.padEnd(4))}  ${check}: ${known}${text}`
  return mend === null ? [line] : [line, `      mend: ${mend}`]
}
