/**
 * The outputs of a stack: what a deployment says of itself.
 *
 * One call, made only by commands that are given the name of a stack. No port: nothing in the engine asks for it.
 */
import { PawlError } from '../../model/errors.ts'
import { type AwsOptions, answerOf, clientConfig, type Deed, loadClient, tryAgain } from '../shared/aws.ts'

/**
 * Names and values of the outputs. Throws `AWS_RESOURCE_MISSING` when there is no such stack, `AWS_ACCESS_DENIED`,
 * `LEDGER_UNAVAILABLE` when CloudFormation does not answer, `PACKAGE_MISSING`.
 */
export async function stackOutputs(stack: string, options: AwsOptions = {}): Promise<ReadonlyMap<string, string>> {
  const sdk = await loadClient('@aws-sdk/client-cloudformation', () => import('@aws-sdk/client-cloudformation'))
  const client = new sdk.CloudFormationClient(clientConfig(options))
  const deed: Deed = { text: `look at stack ${stack}`, writes: false, unavailable: 'LEDGER_UNAVAILABLE' }
  try {
    const { Stacks = [] } = await tryAgain(deed, async () => {
      try {
        return await client.send(new sdk.DescribeStacksCommand({ StackName: stack }))
      } catch (error) {
        const { name } = answerOf(error)
        if (name !== 'ValidationError' && name !== 'StackNotFoundException') throw error
        throw new PawlError('AWS_RESOURCE_MISSING', `there is no stack ${stack} in this account and region`, { stack })
      }
    })
    const outputs = Stacks[0]?.Outputs ?? []
    return new Map(outputs.map(({ OutputKey = '', OutputValue = '' }) => [OutputKey, OutputValue]))
  } finally {
    client.destroy()
  }
}
