import { describe, expect, test } from 'vitest'
import { probesOf } from '../../../src/host/serve/probes.ts'
import type { LinkEnd } from '../../../src/host/stack/link-binding.ts'
import type { PartName } from '../../../src/host/stack/supervisor.ts'

const LINK: LinkEnd = { port: 1, worker: { certPem: '', keyPem: '' }, serverCertPem: '' }

/** The names of what is probed while these parts are up. */
function probed(...up: readonly PartName[]): readonly string[] {
  const kill = () => {}
  const supervisor = {
    probes: new Map([
      ['worker', 1],
      ['worker-2', 2],
    ] as const),
    isUp: (name: PartName) => up.includes(name),
    killWorker: kill,
    killEnclave: kill,
    killLedger: kill,
  }
  const probes = probesOf(supervisor, {
    daemonLink: () => LINK,
    carriers: { links: () => [LINK, LINK], end: kill },
    ledgerLink: () => LINK,
  })
  return probes.watched().map(({ name }) => name)
}

describe('the probes of a router', () => {
  test('are of its workers, its daemon with the carriers, and its ledger', () => {
    expect(probed('worker', 'worker-2', 'enclave', 'ledger')).toEqual([
      'worker',
      'worker-2',
      'enclave',
      'carrier-1',
      'carrier-2',
      'ledger',
    ])
  })

  test('leave out what is down, still starting, or on its way out: it does not answer, and is not frozen', () => {
    expect(probed('worker-2', 'ledger')).toEqual(['worker-2', 'ledger'])
    expect(probed('worker', 'enclave')).toEqual(['worker', 'enclave', 'carrier-1', 'carrier-2'])
  })
})
