/**
 * The functions of a deployment, by the names of their files in `functions/`.
 */
import { type StepName, stepNames } from '../lib/epoch/machine.ts'

/** The steps of the machine, and what stands around it; `recover` is deployed with intake: event only. */
export type FunctionName = StepName | 'trigger' | 'collect' | 'doctor' | 'recover'

/** In the order in which an epoch meets them. */
export const functionNames: readonly FunctionName[] = ['trigger', ...stepNames, 'collect', 'doctor', 'recover']
