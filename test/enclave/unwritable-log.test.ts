import { closeSync, openSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { LINK_PATHS } from '../../src/protocol/link.ts'
import { startDaemonProcess, type DaemonProcess } from './daemon-process.ts'

const CONFIG = {
  service: { name: 'router-under-test', mode: 'local' },
  providers: {
    vega: {
      base_url: 'http://127.0.0.1:9/v1',
      attestation: { adapter: 'tinfoil', allowed_measurements: ['ab'.repeat(48)] },
    },
  },
  routes: [{ model_key: 'm', provider: 'vega', upstream_model: 'x', type: 'chat' }],
}

let daemon: DaemonProcess
afterEach(() => daemon.stop())

test('a daemon does not end by a log that cannot be written, as on a full disk', async () => {
  const full = openSync('/dev/full', 'a')
  daemon = await startDaemonProcess(CONFIG, {}, {}, full)
  closeSync(full)
  const { ready } = await daemon.next('ready')
  // Each check of a provider that cannot be reached is a line of the log.
  const providers = async () => (await daemon.call(ready, LINK_PATHS.providers)).text
  await expect.poll(providers, { timeout: 20_000 }).toContain('"failed"')
  expect(daemon.child.exitCode).toBe(null)
  expect((await daemon.call(ready, LINK_PATHS.state)).status).toBe(200)
}, 60_000)
