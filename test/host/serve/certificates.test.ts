import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  Certificates,
  CSR_FILE,
  retryDelayMs,
  type TlsSettings,
} from '../../../src/host/serve/certificates.ts'
import { checkChain } from '../../../src/host/serve/chain.ts'
import { DaemonRpc } from '../../../src/host/serve/daemon-rpc.ts'
import { openStateDir, type StateDir } from '../../../src/host/stack/state-dir.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import type { DaemonTls, TlsMaterial, ToDaemon } from '../../../src/protocol/boot.ts'
import { startAcmeServer } from '../../support/acme-server.ts'
import { freePort } from '../../support/free-port.ts'
import { makeTestAuthority, type TestAuthority } from '../../support/test-authority.ts'

const DOMAINS = ['router.test']

let authority: TestAuthority
let directory: string
let state: StateDir
/** What happened, in order. */
let events: string[]

beforeAll(async () => {
  authority = await makeTestAuthority()
})
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-certificates-'))
  state = openStateDir(directory)
  events = []
})
afterEach(() => {
  vi.useRealTimers()
  rmSync(directory, { recursive: true })
})

function newKey(): Promise<DaemonTls> {
  return makeTlsIdentity(DOMAINS, new Date())
}

/** A daemon that makes keys, and binds those it is given unless it is to refuse. */
function daemon(refusal?: string): DaemonRpc {
  const answer = async (message: ToDaemon): Promise<void> => {
    if (message.type === 'prepare_tls') rpc.receive({ type: 'tls_prepared', tls: await newKey() })
    if (message.type !== 'renew_tls') return
    if (refusal !== undefined) {
      rpc.receive({ type: 'tls_refused', reason: refusal })
      return
    }
    events.push('bound')
    const tls = message.tls === undefined ? await newKey() : { ...message.tls, spkiSha256: '' }
    rpc.receive({ type: 'tls_renewed', tls })
  }
  const rpc: DaemonRpc = new DaemonRpc((message) => void answer(message))
  return rpc
}

function open(
  wish: TlsSettings,
  current: TlsMaterial,
  rpc = daemon(),
  challengePort = 0,
): Certificates {
  const tools = {
    daemon: rpc,
    state,
    challengeAt: { host: '127.0.0.1', port: challengePort },
    show,
    log,
    now: Date.now,
  }
  return new Certificates(tools, wish, current)
}

async function show(): Promise<void> {
  events.push('shown')
}

function log(text: string): void {
  events.push(text.trim())
}

function chainFile(text: string): string {
  const file = join(directory, 'chain.pem')
  writeFileSync(file, text)
  return file
}

const csr = () => state.read(CSR_FILE) ?? ''
const inService = expect.stringMatching(/^tls +certificate in service until 20/)

describe('certificates', () => {
  test('for the key in service are shown without a new envelope', async () => {
    const file = chainFile('')
    const certificates = open({ domains: DOMAINS, chain_file: file }, await newKey())
    await certificates.start()
    expect(events).toEqual([expect.stringContaining('there is no certificate in the chain')])
    events = []
    chainFile(await authority.sign(csr()))
    await certificates.reload({ domains: DOMAINS, chain_file: file })
    expect(events).toEqual(['shown', inService])
  })

  test('for a new key are shown after the envelope names that key, and not before', async () => {
    const file = chainFile('')
    const wish = { domains: DOMAINS, chain_file: file }
    const certificates = open(wish, await newKey())
    await certificates.start()
    const before = csr()
    events = []
    await certificates.renew()
    expect(csr()).not.toBe(before)
    expect(events).toEqual([])
    chainFile(await authority.sign(csr()))
    await certificates.reload(wish)
    expect(events).toEqual(['bound', 'shown', inService])
    await certificates.reload(wish)
    expect(events).toHaveLength(3)
  })

  test('are ordered when a reload names an authority or other domains, and not at each reload', async () => {
    const challengePort = await freePort()
    const server = await startAcmeServer(() => challengePort)
    const certificates = open({}, await newKey(), daemon(), challengePort)
    await certificates.start()
    expect(events).toEqual([])
    const wish = { domains: DOMAINS, acme_directory: server.directory }
    await certificates.reload(wish)
    expect(events).toEqual(['shown', inService])
    await certificates.reload(wish)
    expect(events).toHaveLength(2)
    await certificates.reload({ ...wish, domains: [...DOMAINS, 'api.router.test'] })
    expect(events).toEqual(['shown', inService, 'shown', inService])
    certificates.close()
    server.close()
  })

  test('are asked for with the domains of a reload', async () => {
    const certificates = open({ domains: DOMAINS }, await newKey())
    await certificates.start()
    const before = csr()
    await certificates.reload({ domains: DOMAINS })
    expect(csr()).toBe(before)
    await certificates.reload({ domains: ['other.test'] })
    const { to } = checkChain(await authority.sign(csr()), ['other.test'], Date.now())
    expect(to).toBeGreaterThan(Date.now())
  })

  test('are asked for no more without domains: the request of an earlier start is for a key that is gone', async () => {
    state.write(CSR_FILE, 'of an earlier start')
    const certificates = open({}, await newKey())
    await certificates.start()
    expect(state.read(CSR_FILE)).toBeUndefined()
    await certificates.reload({ domains: DOMAINS })
    expect(csr()).toContain('BEGIN CERTIFICATE REQUEST')
    await certificates.reload({})
    expect(state.read(CSR_FILE)).toBeUndefined()
    certificates.close()
  })

  test('stay as they are when no report can be captured for the new key', async () => {
    const certificates = open({}, await newKey(), daemon('the firmware is busy'))
    await certificates.renew()
    expect(events).toEqual(['tls      the firmware is busy; the certificate in service stays'])
  })

  test('that could not be ordered because the daemon was away are tried again after five minutes', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const away = 'the enclave daemon is being restarted: try again'
    const rpc = new DaemonRpc(() => {
      throw new Error(away)
    })
    const wish = { domains: DOMAINS, acme_directory: 'https://127.0.0.1:9/directory' }
    const certificates = open(wish, await newKey(), rpc)
    const failed = `tls      ${away}; the certificate in service stays`
    await certificates.renew()
    expect(events).toEqual([failed])
    await vi.advanceTimersByTimeAsync(299_000)
    expect(events).toEqual([failed])
    await vi.advanceTimersByTimeAsync(2_000)
    expect(events).toEqual([failed, failed])
    certificates.close()
  })

  test('whose request cannot be written, as on a full disk, are shown all the same once they are bound', async () => {
    const certificates = open({ domains: DOMAINS }, await newKey())
    symlinkSync('/dev/full', join(directory, `${CSR_FILE}.new`))
    await certificates.renew()
    expect(events).toEqual([
      'bound',
      `tls      ${CSR_FILE} stays as it was: ENOSPC: no space left on device, write`,
      'shown',
      inService,
    ])
  })

  test('without an authority are made by the daemon itself', async () => {
    const certificates = open({}, await newKey())
    await certificates.renew()
    expect(events).toEqual(['bound', 'shown', inService])
  })

  test.each([
    ['another key', 'is for another key: have tls.csr.pem signed'],
    ['other names', 'the certificate does not name other.test'],
  ])('for %s are refused', async (what, reason) => {
    const file = chainFile('')
    const key = await newKey()
    const domains = what === 'other names' ? ['other.test'] : DOMAINS
    const first = open({ domains: DOMAINS, chain_file: file }, key)
    await first.start()
    chainFile(await authority.sign(csr()))
    events = []
    const subject = what === 'other names' ? key : await newKey()
    await open({ domains, chain_file: file }, subject).start()
    expect(events).toEqual([expect.stringContaining(reason)])
  })
})

test('an order that failed is tried again after 5 minutes, then ever later, and at least every hour', () => {
  expect([1, 2, 3, 4, 5, 50].map((failures) => retryDelayMs(failures) / 60_000)).toEqual([
    5, 10, 20, 40, 60, 60,
  ])
})
