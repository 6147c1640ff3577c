/**
 * `npm run aws:deploy`: plain `cdk bootstrap` and `cdk deploy` of `infra/app.ts` against what `aws:up` started.
 *
 * Words after `--` are passed on to `cdk deploy`.
 */
import { createTopics } from './kafka-topics.ts'
import { mustFindLocal, perform, runLogged, say, stackName } from './local.ts'

await perform(async () => {
  const { environment, bootstrapServers } = mustFindLocal()
  say('makes the topics lines and word-counts, unless they are there')
  await createTopics(bootstrapServers)
  const startedAt = performance.now()
  say('cdk bootstrap')
  const known = { ...environment, BOOTSTRAP_SERVERS: bootstrapServers }
  await runLogged('deploy', ['cdk', 'bootstrap', '--ci'], known)
  say(`cdk deploy ${stackName}`)
  const words = ['--require-approval', 'never', '--ci', ...process.argv.slice(2)]
  await runLogged('deploy', ['cdk', 'deploy', ...words], known)
  say(`deployed in ${((performance.now() - startedAt) / 1000).toFixed(0)} s; npm run aws:demo feeds it`)
})
