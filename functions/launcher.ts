/**
 * What starts runs, for the functions that do: executions of this deployment's state machine.
 */
import { stepFunctionsLauncher } from '../lib/adapters/stepfunctions/launcher.ts'
import type { LauncherOf } from './runtime.ts'

/** Throws when the construct did not name the state machine. */
export const launcherOf: LauncherOf = ({ PAWL_STATE_MACHINE: stateMachineArn, PAWL_WORKFLOW: workflow }, meter) => {
  if (stateMachineArn === undefined) throw new Error('PAWL_STATE_MACHINE is needed; the construct sets it')
  return stepFunctionsLauncher({ stateMachineArn, meter, ...(workflow === undefined ? {} : { workflow }) })
}
