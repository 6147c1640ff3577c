/**
 * Rules of cdk-nag that do not hold here, each with its reason.
 *
 * The CDK's own acknowledgements, so that nothing depends on cdk-nag. A finding of a rule is named as `RULE[finding]`.
 */
import { Validations } from 'aws-cdk-lib'
import type { IConstruct } from 'constructs'

/** Says why rules do not hold for a construct and what it is made of. */
export function because(construct: IConstruct, reasons: Readonly<Record<string, string>>): void {
  const acknowledged = Object.entries(reasons).map(([id, reason]) => ({ id, reason }))
  Validations.of(construct).acknowledge(...acknowledged)
}
