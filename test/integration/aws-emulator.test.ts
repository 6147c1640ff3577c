/**
 * The emulator as the tests stand on it: started, stopped with its state, killed, and mended where it differs from AWS.
 */
import { DynamoDBClient, GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb'
import { CreateFunctionCommand, InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda'
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import {
  CreateActivityCommand,
  CreateStateMachineCommand,
  DescribeExecutionCommand,
  SFNClient,
  StartExecutionCommand,
} from '@aws-sdk/client-sfn'
import { buildSync } from 'esbuild'
import { expect } from 'vitest'
import { awsTest, type Emulator, startEmulator } from '../support/aws.ts'
import { freshBucket, freshTable } from '../support/aws-places.ts'
import { zipOf } from '../support/zip.ts'

const role = 'arn:aws:iam::000000000000:role/any'

/** A function of one file; returns its ARN. */
async function deploy(client: LambdaClient, name: string, source: string): Promise<string> {
  const { outputFiles } = buildSync({ stdin: { contents: source }, write: false, format: 'cjs', platform: 'node' })
  const ZipFile = zipOf('index.js', outputFiles[0]!.contents)
  const code = { FunctionName: name, Role: role, Runtime: 'nodejs24.x', Handler: 'index.handler', Code: { ZipFile } }
  return (await client.send(new CreateFunctionCommand({ ...code, Timeout: 10 } as never))).FunctionArn!
}

awsTest('keeps its state over an orderly stop, and forgets what it is told to', async ({ emulator: _ }) => {
  const emulator: Emulator = await startEmulator()
  const s3 = new S3Client({ ...emulator.client, forcePathStyle: true })
  const dynamodb = new DynamoDBClient(emulator.client)
  try {
    const [Bucket, TableName] = [await freshBucket(emulator), await freshTable(emulator)]
    const Key = { pk: { S: 'a' }, sk: { S: 'b' } }
    await s3.send(new PutObjectCommand({ Bucket, Key: 'a/b', Body: 'kept' }))
    await dynamodb.send(new PutItemCommand({ TableName, Item: { ...Key, n: { N: '1' } } }))
    await emulator.stop()
    await emulator.restart()
    const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key: 'a/b' }))
    expect(await Body!.transformToString()).toBe('kept')
    expect((await dynamodb.send(new GetItemCommand({ TableName, Key }))).Item).toMatchObject({ n: { N: '1' } })
    await emulator.reset()
    await expect(s3.send(new GetObjectCommand({ Bucket, Key: 'a/b' }))).rejects.toThrow(/bucket/)
  } finally {
    s3.destroy()
    dynamodb.destroy()
    await emulator.remove()
  }
})

awsTest('reports the name of what a function throws, and keeps its process', async ({ emulator }) => {
  const client = new LambdaClient(emulator.client)
  const name = `throws-${Date.now()}`
  const source = `let calls = 0
    exports.handler = async () => { calls++; throw Object.assign(new Error('call ' + calls), { name: 'Retryable' }) }`
  const arn = await deploy(client, name, source)
  for (const call of [1, 2]) {
    const { FunctionError, Payload } = await client.send(new InvokeCommand({ FunctionName: name }))
    expect(FunctionError).toBeDefined()
    const error = JSON.parse(Buffer.from(Payload!).toString())
    expect(error).toMatchObject({ errorType: 'Retryable', errorMessage: `call ${call}` })
  }
  const machines = new SFNClient(emulator.client)
  const caught = { ErrorEquals: ['Retryable'], Next: 'Caught' }
  const definition = {
    StartAt: 'Throw',
    States: {
      Throw: { Type: 'Task', Resource: arn, Catch: [caught], End: true },
      Caught: { Type: 'Pass', Result: 'caught', End: true },
    },
  }
  const { stateMachineArn } = await machines.send(
    new CreateStateMachineCommand({ name, roleArn: role, definition: JSON.stringify(definition) }),
  )
  const { executionArn } = await machines.send(new StartExecutionCommand({ stateMachineArn, input: '{}' }))
  const outcome = async () => (await machines.send(new DescribeExecutionCommand({ executionArn }))).output
  await expect.poll(outcome, { timeout: 10_000 }).toBe('"caught"')
  client.destroy()
  machines.destroy()
})

awsTest('repeats the answer to a start that is sent twice while its execution runs', async ({ emulator }) => {
  const client = new SFNClient(emulator.client)
  const name = `stays-${Date.now()}`
  const { activityArn } = await client.send(new CreateActivityCommand({ name }))
  const definition = { StartAt: 'Stay', States: { Stay: { Type: 'Task', Resource: activityArn, End: true } } }
  const { stateMachineArn } = await client.send(
    new CreateStateMachineCommand({ name, roleArn: role, definition: JSON.stringify(definition) }),
  )
  const start = (input: string) => client.send(new StartExecutionCommand({ stateMachineArn, name: 'one', input }))
  const { executionArn } = await start('{}')
  expect((await start('{}')).executionArn).toBe(executionArn)
  await expect(start('{"other":true}')).rejects.toThrow(/already exists/i)
  client.destroy()
})
