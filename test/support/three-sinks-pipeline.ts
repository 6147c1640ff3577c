/**
 * The example `three-sinks` as it is killed in tests: small epochs, manifests kept for the judge, no growing delays.
 */
import { threeSinks } from '../../examples/three-sinks/pipeline.ts'

export default threeSinks({
  checkpoint: { intervalMs: 100, timeoutMs: 7000 },
  leaseMs: 15_000,
  retain: { epochs: 5000 },
  // Killed again and again in the same epoch, the workers would else wait ever longer before they try again.
  restart: { strategy: 'fixed-delay', attempts: 1000, delayMs: 50 },
  promotionRetryMs: [100, 500],
})
