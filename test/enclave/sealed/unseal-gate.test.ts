import { beforeAll, describe, expect, it } from 'vitest'
import { signUnsealDocument, type UnsealTerms } from '../../../src/cli/unseal/sign-document.ts'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { signCompactJws } from '../../../src/protocol/compact-jws.ts'
import { UNSEAL_REFUSALS, UNSEAL_SCHEMA, UNSEAL_TYP } from '../../../src/protocol/unseal.ts'
import { makeSigningKey, type SigningKey } from '../../../src/enclave/release/signing-key.ts'
import { ProvenTime } from '../../../src/enclave/clock/proven-time.ts'
import { NonceMemory } from '../../../src/enclave/sealed/nonce-memory.ts'
import { UnsealGate, type UnsealTarget } from '../../../src/enclave/sealed/unseal-gate.ts'

const START = 1_800_000_000_000
const NONCE = 'ab'.repeat(32)
const TERMS: UnsealTerms = {
  nonce: NONCE,
  tls_spki_sha256: '11'.repeat(32),
  configuration_sha256: '22'.repeat(32),
  secrets: { ADMIN_TOKEN: 'a secret that nobody must see' },
}

let operator: SigningKey

beforeAll(async () => {
  operator = await makeSigningKey({ extractable: false })
})

/** A gate whose clock stands still, with a nonce attested. */
function open(change: Partial<UnsealTarget> = {}, problem: string | null = null) {
  const clock = { now: START }
  const logged: object[] = []
  const offered: unknown[] = []
  const nonces = new NonceMemory(() => clock.now)
  nonces.remember(NONCE)
  const proven = new ProvenTime(() => clock.now)
  const gate = new UnsealGate({
    target: () => ({
      operatorKey: operator.publicJwk,
      configurationSha256: TERMS.configuration_sha256,
      tlsSpkiSha256: TERMS.tls_spki_sha256,
      ...change,
    }),
    nonces,
    proven,
    now: () => clock.now,
    log: (event, fields) => void logged.push({ event, ...fields }),
    offer: async (document) => {
      offered.push(document.secrets)
      return problem
    },
  })
  return { gate, clock, nonces, logged, offered }
}

const sign = (terms: Partial<UnsealTerms> = {}, at = START) =>
  signUnsealDocument({ ...TERMS, ...terms }, operator, at)

const refused = (reason: keyof typeof UNSEAL_REFUSALS) => ({
  outcome: 'refused',
  reason,
  message: UNSEAL_REFUSALS[reason],
})

describe('the gate for documents of the operator', () => {
  it('takes a document for this router, in time, once', async () => {
    const { gate, offered, logged } = open()
    const document = await sign()
    expect(await gate.accept(document)).toEqual({ outcome: 'accepted' })
    expect(offered).toEqual([TERMS.secrets])
    expect(await gate.accept(document)).toEqual(refused('unknown_nonce'))
    expect(gate.refused).toEqual({ unknown_nonce: 1 })
    expect(JSON.stringify(logged)).not.toContain('secret that')
  })

  it('takes none where the configuration names no operator key', async () => {
    const { gate } = open({ operatorKey: undefined })
    expect(await gate.accept(await sign())).toEqual(refused('not_configured'))
  })

  it.each([
    ['expired', 301_000],
    ['not_yet_valid', -61_000],
  ] as const)('refuses as %s with a clock %d ms off', async (reason, offset) => {
    const { gate, clock } = open()
    clock.now += offset
    expect(await gate.accept(await sign())).toEqual(refused(reason))
  })

  it('refuses a nonce that was attested too long ago', async () => {
    const { gate, clock } = open()
    clock.now += 600_000
    expect(await gate.accept(await sign({}, clock.now))).toEqual(refused('unknown_nonce'))
  })

  it('notices a clock that was set back behind a document it has taken', async () => {
    const { gate, clock, nonces } = open()
    expect(await gate.accept(await sign())).toEqual({ outcome: 'accepted' })
    clock.now -= 3_600_000
    nonces.remember('cd'.repeat(32))
    const later = await sign({ nonce: 'cd'.repeat(32) }, clock.now)
    expect(await gate.accept(later)).toEqual(refused('not_yet_valid'))
  })

  it('refuses a document that is valid for longer than it travels', async () => {
    const issued = START / 1000
    const long = { schema: UNSEAL_SCHEMA, issued_at: issued, expires_at: issued + 601, ...TERMS }
    const { kid, privateKey } = operator
    const jws = await signCompactJws(utf8(JSON.stringify(long)), {
      kid,
      typ: UNSEAL_TYP,
      privateKey,
    })
    expect(await open().gate.accept(jws)).toEqual(refused('validity_too_long'))
  })

  it.each([
    ['another kind of document', 'receipt+jwt', {}, 'malformed'],
    ['a member that nobody knows', UNSEAL_TYP, { note: 'x' }, 'malformed'],
  ] as const)('refuses %s', async (_what, typ, more, reason) => {
    const issued = START / 1000
    const times = { schema: UNSEAL_SCHEMA, issued_at: issued, expires_at: issued + 60 }
    const { kid, privateKey } = operator
    const payload = utf8(JSON.stringify({ ...times, ...TERMS, ...more }))
    const jws = await signCompactJws(payload, { kid, typ, privateKey })
    expect(await open().gate.accept(jws)).toEqual(refused(reason))
  })

  it('uses a nonce up even where the secrets cannot be put into force, and says why', async () => {
    const { gate } = open({}, 'ADMIN_TOKEN: is missing')
    expect(await gate.accept(await sign())).toEqual({
      outcome: 'refused',
      reason: 'secrets_refused',
      message: `${UNSEAL_REFUSALS.secrets_refused}: ADMIN_TOKEN: is missing`,
    })
    expect(await gate.accept(await sign())).toEqual(refused('unknown_nonce'))
  })
})

describe('the memory of nonces', () => {
  it('holds no more than a few thousand, the latest', () => {
    const nonces = new NonceMemory(() => START)
    for (let count = 0; count <= 4_096; count++) nonces.remember(String(count))
    expect([nonces.take('0'), nonces.take('1'), nonces.take('4096')]).toEqual([false, true, true])
  })
})
