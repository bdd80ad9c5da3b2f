import { describe, expect, test } from 'vitest'
import {
  authorityExtensions,
  describeChip,
  makeSimulatedAuthority,
  vekExtensions,
  type SimulatedChip,
} from '../../../src/enclave/simulated/chain.ts'
import type { Extension } from '../../../src/enclave/simulated/certificate.ts'
import * as der from '../../../src/enclave/simulated/der-writer.ts'
import type { Bytes } from '../../../src/protocol/bytes.ts'
import { AMD_NAMES } from '../../../src/verify/snp/product.ts'
import {
  otherMaskSigner,
  pkcs1Signer,
  pssSha256Signer,
  shortSaltSigner,
} from '../../support/odd-signers.ts'
import {
  DAY_MS,
  NOW,
  oddChain,
  revocationList,
  splitPem,
  syntheticAuthority,
  syntheticChain,
  verifySynthetic,
} from '../../support/synthetic-snp.ts'
import { expectOnly, failures } from '../../support/verdicts.ts'

const AMD = '1.3.6.1.4.1.3704.1.'

/** Evidence of a chip whose certificate has these extensions instead of its own. */
async function withExtensions(
  change: (extensions: Extension[]) => readonly Extension[],
  wanted: Partial<SimulatedChip> = {},
) {
  const arkName = `ARK-${AMD_NAMES[wanted.product ?? 'genoa']}`
  const chip = describeChip({ arkName, ...wanted })
  const chain = await oddChain({ vek: { extensions: change(vekExtensions(chip)) } }, chip)
  return verifySynthetic({ chain })
}

async function spkiOf(key: CryptoKey): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.exportKey('spki', key))
}

const without = (id: string) => (extensions: Extension[]) =>
  extensions.filter((extension) => extension.id !== AMD + id)

const replaced = (id: string, value: Bytes) => (extensions: Extension[]) => [
  ...without(id)(extensions),
  { id: AMD + id, value },
]

const wrap = (extension: Extension) =>
  extension.id === `${AMD}4` ? { ...extension, value: der.octetString(extension.value) } : extension

const lastChipIdByte = (report: Bytes) => report.set([1], 0x1a0 + 63)

describe('roots and order', () => {
  test('a self-made root with the right names fails', async () => {
    const result = await verifySynthetic({ anchored: false })
    expectOnly(result, 'ark_pinned', /^ARK-Genoa has the unknown key [0-9a-f]{64}$/)
  })

  test('an authority of another product or kind fails', async () => {
    const chain = await syntheticChain()
    const [vek, , ark] = splitPem(chain.pem)
    const swaps = [{ product: 'milan', arkName: 'ARK-Genoa' }, { kind: 'vlek' }] as const
    for (const chip of swaps) {
      const [, ask] = splitPem((await syntheticChain(chip)).pem)
      const result = await verifySynthetic({ chain, pem: `${vek}${ask}${ark}` })
      expectOnly(result, 'certificate_chain', 'do not issue one another')
    }
    const rootOfMilan = await verifySynthetic({ chip: { arkName: 'ARK-Milan' } })
    expectOnly(rootOfMilan, 'certificate_chain', 'the root is not of the same product')
    const { ask: otherKey } = await makeSimulatedAuthority()
    const impostor = await oddChain({ ask: { spki: await spkiOf(otherKey.publicKey) } })
    expectOnly(
      await verifySynthetic({ chain: impostor }),
      'vek_signature',
      'the signature does not verify',
    )
  })

  test('a chain in another order, short, long or doubled fails', async () => {
    const chain = await syntheticChain()
    const [vek = '', ask = '', ark = ''] = splitPem(chain.pem)
    for (const pem of [ark + ask + vek, vek + ark + ask, vek + vek + ark, vek + ask + ask]) {
      const result = await verifySynthetic({ chain, pem })
      expectOnly(result, 'certificate_chain', 'do not issue one another')
    }
    for (const pem of [vek, vek + ask, vek + ask + ark + ark, vek + ask + ask + ark]) {
      const result = await verifySynthetic({ chain, pem })
      expectOnly(result, 'certificate_chain', /^\d certificates instead of VEK, ASK, ARK$/)
    }
  })
})

describe('signatures, keys, dates and roles', () => {
  test('a certificate signed by any other scheme fails', async () => {
    const { ark, ask } = await syntheticAuthority()
    for (const make of [pkcs1Signer, pssSha256Signer, shortSaltSigner, otherMaskSigner]) {
      for (const [name, key] of [
        ['ark', ark],
        ['ask', ark],
        ['vek', ask],
      ] as const) {
        const chain = await oddChain({ [name]: { signer: await make(key.privateKey) } })
        const result = await verifySynthetic({ chain })
        expectOnly(result, `${name}_signature`, 'not signed by RSASSA-PSS with SHA-384')
      }
    }
  })

  test('a chip key of another kind fails', async () => {
    const p256 = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, [
      'sign',
    ])
    const { ark } = await syntheticAuthority()
    for (const [kind, key] of [
      ['other', p256],
      ['RSA-4096', ark],
    ] as const) {
      const chain = await oddChain({ vek: { spki: await spkiOf(key.publicKey) } })
      const result = await verifySynthetic({ chain })
      expectOnly(result, 'certificate_keys', `the chip key is ${kind} instead of P-384`)
    }
  })

  test('any certificate outside its dates fails', async () => {
    for (const name of ['vek', 'ask', 'ark'] as const) {
      const expired = await oddChain({ [name]: { notAfter: new Date(NOW - 1000) } })
      const early = await oddChain({ [name]: { notBefore: new Date(NOW + 1000) } })
      expectOnly(await verifySynthetic({ chain: expired }), 'certificate_validity', 'is expired')
      expectOnly(
        await verifySynthetic({ chain: early }),
        'certificate_validity',
        'is not yet valid',
      )
    }
    const years = 8 * 365 * DAY_MS
    expectOnly(await verifySynthetic({ now: NOW + years }), 'certificate_validity', 'is expired')
  })

  test('an authority that may not issue, or a chip key that may, fails', async () => {
    const leaf = { id: '2.5.29.19', critical: true, value: der.sequence() }
    const usage = { id: '2.5.29.15', critical: true, value: der.bitString(Uint8Array.of(0x80), 7) }
    const constraints = authorityExtensions('intermediate').slice(1)
    const certSign = authorityExtensions('intermediate').slice(0, 1)
    for (const extensions of [
      [],
      constraints,
      certSign,
      [...certSign, leaf],
      [usage, ...constraints],
    ]) {
      const result = await verifySynthetic({ chain: await oddChain({ ask: { extensions } }) })
      expectOnly(result, 'certificate_roles', 'the ASK may not issue certificates')
    }
    const deep = await oddChain({ ask: { extensions: authorityExtensions('root') } })
    expectOnly(
      await verifySynthetic({ chain: deep }),
      'certificate_roles',
      'the ASK may issue authorities',
    )
    const ark = await oddChain({ ark: { extensions: [] } })
    expectOnly(
      await verifySynthetic({ chain: ark }),
      'certificate_roles',
      'the ARK may not issue certificates',
    )
    const authority = { id: '2.5.29.19', value: der.sequence(der.boolean(true)) }
    const vek = await withExtensions((extensions) => [...extensions, authority])
    expectOnly(vek, 'certificate_roles', 'the chip key may issue certificates')
  })

  test('a revoked authority fails, and so does a list that is false or out of date', async () => {
    const clean = await revocationList([7, 8])
    expect(failures(await verifySynthetic({ crl: clean }))).toEqual([])
    expect(failures(await verifySynthetic({ crl: await revocationList([]) }))).toEqual([])
    const revoked = await verifySynthetic({ crl: await revocationList([7, 0x10001]) })
    expectOnly(revoked, 'revocation', 'the ASK is revoked')
    const { ask } = await syntheticAuthority()
    const forged = await revocationList([], { key: ask.privateKey })
    expectOnly(
      await verifySynthetic({ crl: forged }),
      'revocation',
      'revocation list: the signature does not verify',
    )
    const stale = await verifySynthetic({ crl: await revocationList([], { days: -0.5 }) })
    expectOnly(stale, 'revocation', 'the revocation list is out of date')
    const other = await verifySynthetic({ crl: await revocationList([], { issuer: 'ARK-Milan' }) })
    expectOnly(other, 'revocation', "the revocation list is not the root's")
  })

  test('a list that is required and missing fails, and so does one that cannot be read', async () => {
    const missing = await verifySynthetic({ requireCrl: true })
    expectOnly(missing, 'revocation', "AMD's revocation list is missing")
    const cut = (await revocationList([])).slice(0, 100)
    const broken = await verifySynthetic({ crl: cut })
    expectOnly(broken, 'revocation', /^the revocation list cannot be read: /)
    const held = await verifySynthetic({ crl: await revocationList([]), requireCrl: true })
    expect(failures(held)).toEqual([])
  })

  test('a list counts at a moment of its own where that is given', async () => {
    const crl = await revocationList([], { days: 400 })
    const chain = await syntheticChain()
    const late = NOW + 300 * DAY_MS
    expect(failures(await verifySynthetic({ chain, crl, crlNow: late }))).toEqual([])
    const past = await verifySynthetic({ chain, crl, crlNow: NOW + 401 * DAY_MS })
    expectOnly(past, 'revocation', 'the revocation list is out of date')
  })
})

describe('what the certificate says of the chip', () => {
  test('a patch level or the chip id that is missing fails', async () => {
    for (const id of ['3.1', '3.2', '3.3', '3.8']) {
      const result = await withExtensions(without(id))
      expectOnly(result, 'vek_extensions', 'a patch level or structVersion is missing')
    }
    const fmc = await withExtensions(without('3.9'), { product: 'turin' })
    expectOnly(fmc, 'vek_extensions', 'a patch level or structVersion is missing')
    const hwid = await withExtensions(without('4'))
    expectOnly(hwid, 'vek_extensions', 'not exactly one of HWID and CSP_ID')
  })

  test('a doubled or unknown AMD extension fails, and so do both subjects at once', async () => {
    const doubled = await withExtensions((all) => [...all, ...all.slice(-1)])
    expectOnly(doubled, 'vek_extensions', 'an extension stands there twice')
    for (const id of ['6', '3.10', '3.9']) {
      const extra = { id: AMD + id, value: der.integer(1) }
      const unknown = await withExtensions((all) => [...all, extra])
      expectOnly(unknown, 'vek_extensions', 'an extension that Genoa does not have')
    }
    const cspId = { id: `${AMD}5`, value: der.ia5String('CN=a.example') }
    const both = await withExtensions((all) => [...all, cspId])
    expectOnly(both, 'vek_extensions', 'not exactly one of HWID and CSP_ID')
    const swapped = await withExtensions((all) => [...without('4')(all), cspId])
    expectOnly(swapped, 'vek_extensions', 'HWID or CSP_ID wrong for a vcek')
  })

  test('a patch level that differs from the reported one fails, whichever it is', async () => {
    const genoa = [
      [0, 'bootloader'],
      [1, 'tee'],
      [6, 'snp'],
      [7, 'microcode'],
    ] as const
    for (const [byte, name] of genoa) {
      const result = await verifySynthetic({
        patch: (report) => report.set([1], 0x180 + byte),
        policy: {},
        chain: await syntheticChain({ tcb: { bootloader: 9, tee: 9, snp: 9, microcode: 9 } }),
      })
      expectOnly(result, 'reported_tcb', `not what the certificate says: ${name} 1 is not 9`)
    }
  })

  test('levels certified by the layout of another product fail', async () => {
    const bytes = Uint8Array.of(1, 0, 0, 2, 0, 0, 0, 0x47)
    const tcb = { fmc: 0, bootloader: 1, tee: 0, snp: 0, microcode: 0x47 }
    const fields = { reportedTcb: bytes, currentTcb: bytes, committedTcb: bytes, launchTcb: bytes }
    const turin = await verifySynthetic({ chip: { product: 'turin', tcb }, fields })
    expectOnly(turin, 'reported_tcb', 'fmc 1 is not 0, bootloader 0 is not 1, snp 2 is not 0')
    const reported = { reportedTcb: bytes }
    const milan = await verifySynthetic({ chip: { product: 'milan' }, fields: reported })
    expectOnly(milan, 'reported_tcb', 'a byte that the layout of this product reserves is set')
  })

  test('a certificate of another chip fails, and so do bytes after a short chip id', async () => {
    const chipId = new Uint8Array(64).fill(7)
    const other = await verifySynthetic({ fields: { chipId } })
    expectOnly(other, 'chip_id', 'the certificate is of another chip')
    const tail = await verifySynthetic({ chip: { product: 'turin' }, patch: lastChipIdByte })
    expectOnly(tail, 'chip_id', 'bytes after the chip id are not zero')
    for (const value of [new Uint8Array(64), der.octetString(new Uint8Array(64))]) {
      const long = await withExtensions((all) => [...without('4')(all), { id: `${AMD}4`, value }], {
        product: 'turin',
      })
      expectOnly(long, 'vek_extensions', /./)
    }
  })

  test('a chip id inside an OCTET STRING is read like a raw one', async () => {
    for (const product of ['milan', 'turin'] as const) {
      expect(failures(await withExtensions((all) => all.map(wrap), { product }))).toEqual([])
    }
  })

  test('a masked chip id fails unless the policy allows it', async () => {
    const fields = { chipId: new Uint8Array(64) }
    const result = await verifySynthetic({ fields })
    expectOnly(result, 'chip_id', 'the host masked the chip id')
    const allowed = await verifySynthetic({ fields, policy: { allowMaskedChipId: true } })
    expect(failures(allowed)).toEqual([])
  })

  test('a CPU of another product than the certificate fails', async () => {
    const cpus = [
      [0x19, 0x01],
      [0x1a, 0x02],
      [0x1a, 0x50],
      [0x17, 0x31],
    ] as const
    for (const [family, model] of cpus) {
      const cpuid = Uint8Array.of(family, model, 0)
      const result = await verifySynthetic({ fields: { cpuid } })
      expectOnly(result, 'product', `family ${family} model ${model} is not Genoa`)
    }
  })

  test('a structVersion or product name of another product fails', async () => {
    const version = await withExtensions(replaced('1', der.integer(1)))
    expectOnly(version, 'vek_extensions', 'structVersion is not that of Genoa')
    const old = await withExtensions(replaced('1', der.integer(0)), { product: 'turin' })
    expectOnly(old, 'vek_extensions', 'structVersion is not that of Turin')
    for (const name of ['Milan', 'Genoa2', 'genoa']) {
      const named = await withExtensions(replaced('2', der.ia5String(name)))
      expectOnly(named, 'vek_extensions', 'productName is not Genoa')
    }
    expect(failures(await withExtensions(replaced('2', der.ia5String('Genoa-B1'))))).toEqual([])
  })
})
