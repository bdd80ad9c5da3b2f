import { join } from 'node:path'
import { program } from 'commander'
import { firstCustomer } from '../src/host/stack/first-customer.ts'
import { createLinkBinding, type BoundRequest } from '../src/host/stack/link-binding.ts'
import { checkRuntime } from '../src/host/stack/runtime-check.ts'
import { curlCommand } from '../src/host/stack/screen.ts'
import { PROJECT_DIR, readSettings } from '../src/host/stack/settings.ts'
import { openStateDir } from '../src/host/stack/state-dir.ts'
import { startWithoutWorker } from '../src/host/stack/without-worker.ts'

/**
 * Runs the worker under `wrangler dev`, rebuilt at every change of its source, with the stand-in and the enclave
 * process beside it. The `LINK` binding of wrangler.toml works only on a Worker host; here a function does its mTLS.
 */
program
  .name('dev')
  .description(
    'Run the worker under wrangler dev, rebuilt at every change, with stand-in and daemon beside it.',
  )
  .addHelpText('after', '\nPORT (8787) and STATE_DIR (.state-dev) are taken from the environment.')
  .parse()
checkRuntime()
// Loaded late, because both take seconds and `--help` does not need them.
const { Response: MiniflareResponse } = await import('miniflare')
const { unstable_startWorker: startWorker } = await import('wrangler')
// Disables features of wrangler that contact hosts a local run does not need.
Object.assign(process.env, { WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' })
const settings = readSettings({ STATE_DIR: '.state-dev', ...process.env })
const state = openStateDir(settings.stateDir)
const others = await startWithoutWorker(settings, state, (message) => console.log(message.type))
const link = createLinkBinding(others.link, (body, init) => new MiniflareResponse(body, init))
const worker = await startWorker({
  config: join(PROJECT_DIR, 'wrangler.toml'),
  bindings: { LINK: { type: 'fetcher', fetcher: (request: BoundRequest) => link.fetch(request) } },
  dev: {
    persist: state.directory('wrangler'),
    server: { hostname: '127.0.0.1', port: settings.port, secure: false },
    inspector: false,
    watch: true,
  },
})
const { origin } = await worker.url
const { apiKey } = await firstCustomer(state, origin, others.adminToken)
console.log(`\n${curlCommand(origin, apiKey, 'glm-5')}\n`)

await new Promise((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, resolve)
})
await worker.dispose()
await link.close()
await others.stop()
process.exit(0)
