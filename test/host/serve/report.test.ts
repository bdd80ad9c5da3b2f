import { expect, test } from 'vitest'
import { warnings } from '../../../src/host/serve/report.ts'
import { checkConfig } from '../../../src/protocol/config-rules.ts'
import type { RouterConfig } from '../../../src/protocol/config.ts'
import { TRUST_BUNDLE_URL } from '../../support/trust-bundle-url.ts'

function config(): RouterConfig {
  const check = checkConfig({
    service: { name: 'r', trust_bundle_url: TRUST_BUNDLE_URL },
    providers: {},
    routes: [],
  })
  if (!check.ok) throw new Error(JSON.stringify(check.problems))
  return check.config
}

const ON_HARDWARE = { platform: 'configfs-tsm', standin: false, coreDumps: false } as const

test('a start on hardware, with attested providers and without core dumps, warns of nothing', () => {
  expect(warnings(config(), ON_HARDWARE)).toEqual([])
})

test('a start warns of core dumps, which would bring keys and prompts to the disk', () => {
  expect(warnings(config(), { ...ON_HARDWARE, coreDumps: true })).toEqual([
    '  core dumps are on: a part that crashes writes its memory, keys and prompts, to the disk; set LimitCORE=0, or ulimit -c 0',
  ])
})
