/**
 * The document of a state machine, as it is deployed.
 */
import { type AwsOptions, answerOf, clientConfig, type Deed, loadClient, tryAgain } from '../shared/aws.ts'

/** Null when there is no such machine. Throws `LAUNCHER_UNAVAILABLE`, `AWS_ACCESS_DENIED`, `PACKAGE_MISSING`. */
export async function definitionOf(stateMachineArn: string, options: AwsOptions = {}): Promise<string | null> {
  const sdk = await loadClient('@aws-sdk/client-sfn', () => import('@aws-sdk/client-sfn'))
  const client = new sdk.SFNClient(clientConfig(options))
  const deed: Deed = { text: `look at ${stateMachineArn}`, writes: false, unavailable: 'LAUNCHER_UNAVAILABLE' }
  try {
    return await tryAgain(deed, async () => {
      try {
        return (await client.send(new sdk.DescribeStateMachineCommand({ stateMachineArn }))).definition ?? null
      } catch (error) {
        if (answerOf(error).name === 'StateMachineDoesNotExist') return null
        throw error
      }
    })
  } finally {
    client.destroy()
  }
}
