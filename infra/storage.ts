/**
 * Bucket and table: what a pipeline is, once the functions are gone.
 *
 * Both stay when the stack is destroyed, and a new deployment takes them up again by name. No rule expires an object
 * by age: a parked epoch can be old, and only `collect` knows what a head reaches. Only uploads that were never
 * completed, which no name in a manifest can mean, are aborted. The bucket itself refuses to replace an object.
 */
import { Duration, RemovalPolicy } from 'aws-cdk-lib'
import * as dynamodb from 'aws-cdk-lib/aws-dynamodb'
import * as iam from 'aws-cdk-lib/aws-iam'
import * as s3 from 'aws-cdk-lib/aws-s3'
import { Construct } from 'constructs'
import { because } from './nag.ts'
import type { Storage as StorageProps } from './props.ts'

/** The two stores of a pipeline. */
export class Storage extends Construct {
  readonly bucket: s3.IBucket
  readonly table: dynamodb.ITable

  constructor(scope: Construct, id: string, { existingBucketName, existingTableName }: StorageProps) {
    super(scope, id)
    this.bucket =
      existingBucketName === undefined ? newBucket(this) : s3.Bucket.fromBucketName(this, 'Bucket', existingBucketName)
    this.table =
      existingTableName === undefined ? newTable(this) : dynamodb.Table.fromTableName(this, 'Table', existingTableName)
  }
}

function newBucket(scope: Construct): s3.Bucket {
  const bucket = new s3.Bucket(scope, 'Bucket', {
    encryption: s3.BucketEncryption.S3_MANAGED,
    enforceSSL: true,
    minimumTLSVersion: 1.2,
    blockPublicAccess: s3.BlockPublicAccess.BLOCK_ALL,
    objectOwnership: s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
    removalPolicy: RemovalPolicy.RETAIN,
    lifecycleRules: [{ id: 'forget-uploads', abortIncompleteMultipartUploadAfter: Duration.days(2) }],
  })
  // Source: Amazon S3 user guide, "Enforce conditional writes". Parts of an upload carry no condition, its end does.
  bucket.addToResourcePolicy(
    new iam.PolicyStatement({
      sid: 'NothingIsReplaced',
      effect: iam.Effect.DENY,
      principals: [new iam.AnyPrincipal()],
      actions: ['s3:PutObject'],
      resources: [bucket.arnForObjects('*')],
      conditions: { Null: { 's3:if-none-match': 'true' }, Bool: { 's3:ObjectCreationOperation': 'true' } },
    }),
  )
  because(bucket, {
    'AwsSolutions-S1': 'Objects are reached by the roles of this stack alone; CloudTrail data events tell more.',
  })
  return bucket
}

function newTable(scope: Construct): dynamodb.Table {
  return new dynamodb.Table(scope, 'Table', {
    partitionKey: { name: 'pk', type: dynamodb.AttributeType.STRING },
    sortKey: { name: 'sk', type: dynamodb.AttributeType.STRING },
    billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
    removalPolicy: RemovalPolicy.RETAIN,
  })
}
