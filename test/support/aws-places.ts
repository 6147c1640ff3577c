/**
 * Buckets and tables of a test on the emulator: each is new, with the keys that the adapters expect.
 */
import { randomBytes } from 'node:crypto'
import { BillingMode, CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import type { Emulator } from './aws-emulator.ts'

/** A new bucket; returns its name. */
export async function freshBucket({ client }: Emulator): Promise<string> {
  const Bucket = `pawl-${randomBytes(6).toString('hex')}`
  const s3 = new S3Client({ ...client, forcePathStyle: true })
  await s3.send(new CreateBucketCommand({ Bucket }))
  s3.destroy()
  return Bucket
}

/** A new table with the keys of the ledger; returns its name. */
export async function freshTable({ client }: Emulator): Promise<string> {
  const TableName = `pawl-${randomBytes(6).toString('hex')}`
  const dynamodb = new DynamoDBClient(client)
  await dynamodb.send(
    new CreateTableCommand({
      TableName,
      BillingMode: BillingMode.PAY_PER_REQUEST,
      KeySchema: [
        { AttributeName: 'pk', KeyType: 'HASH' },
        { AttributeName: 'sk', KeyType: 'RANGE' },
      ],
      AttributeDefinitions: [
        { AttributeName: 'pk', AttributeType: 'S' },
        { AttributeName: 'sk', AttributeType: 'S' },
      ],
    }),
  )
  dynamodb.destroy()
  return TableName
}
