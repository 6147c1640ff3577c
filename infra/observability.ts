/**
 * Alarms: few, and each one for a person.
 *
 * A parked pipeline waits for somebody, runs that die are taken over but should not die, and a trigger that fails
 * leaves only the lease and the next tick. Lag is reported by each tick; how much is too much, only its owner knows.
 */
import { Duration } from 'aws-cdk-lib'
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch'
import type * as lambda from 'aws-cdk-lib/aws-lambda'
import { Construct } from 'constructs'

/** What is watched. */
export interface ObservabilityProps {
  readonly stageName: string
  readonly pipeline: string
  readonly machineArn: string
  readonly trigger: lambda.IFunction
}

/** The alarms of a deployment; add actions to them as you like. */
export class Observability extends Construct {
  readonly parked: cloudwatch.Alarm
  readonly runsDied: cloudwatch.Alarm
  readonly triggerFails: cloudwatch.Alarm

  constructor(scope: Construct, id: string, { stageName, pipeline, machineArn, trigger }: ObservabilityProps) {
    super(scope, id)
    const period = Duration.minutes(5)
    const sum = { statistic: 'Sum', period }
    const alarm = (name: string, metric: cloudwatch.IMetric, alarmDescription: string) =>
      new cloudwatch.Alarm(this, name, {
        metric,
        alarmDescription,
        threshold: 1,
        evaluationPeriods: 1,
        comparisonOperator: cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        treatMissingData: cloudwatch.TreatMissingData.NOT_BREACHING,
      })
    const own = { namespace: `Pawl/${stageName}`, dimensionsMap: { pipeline } }
    this.parked = alarm(
      'Parked',
      new cloudwatch.Metric({ ...own, metricName: 'Parked', ...sum }),
      `${pipeline} (${stageName}) waits: for a sink that is gone, or for a person. pawl status tells why.`,
    )
    const runs = { namespace: 'AWS/States', dimensionsMap: { StateMachineArn: machineArn } }
    this.runsDied = alarm(
      'RunsDied',
      new cloudwatch.Metric({ ...runs, metricName: 'ExecutionsFailed', ...sum }),
      `A run of ${pipeline} (${stageName}) died. The next one has taken over; see why in its history.`,
    )
    this.triggerFails = alarm(
      'TriggerFails',
      trigger.metricErrors({ period }),
      `The trigger of ${pipeline} (${stageName}) fails: nothing wakes the pipeline until it works.`,
    )
  }
}
