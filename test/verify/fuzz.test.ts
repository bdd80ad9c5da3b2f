import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { assert, integer, property } from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { concatBytes, fromHex, utf8, type Bytes } from '../../src/protocol/bytes.ts'
import { parseCompactJws } from '../../src/protocol/compact-jws.ts'
import { MalformedEvidence } from '../../src/protocol/malformed-evidence.ts'
import { manifestSchema } from '../../src/protocol/manifest.ts'
import { readDocument } from '../../src/protocol/read-document.ts'
import { receiptClaimsSchema } from '../../src/protocol/receipt.ts'
import { parseStrictJson } from '../../src/protocol/strict-json.ts'
import { trustBundleSchema } from '../../src/protocol/trust-bundle.ts'
import { readEnvelope } from '../../src/verify/envelope-hardware.ts'
import { readReport } from '../../src/verify/snp/report.ts'
import { readVekExtensions } from '../../src/verify/snp/vek-extensions.ts'
import { readAuthority } from '../../src/verify/x509/authority.ts'
import { readCertificate } from '../../src/verify/x509/certificate.ts'
import { derToPem, readPem } from '../../src/verify/x509/pem.ts'
import { keyKind } from '../../src/verify/x509/public-key.ts'
import { readRevocationList } from '../../src/verify/x509/revocation-list.ts'
import { receiptOf } from '../support/synthetic-receipt.ts'
import { revocationList, syntheticChain, syntheticReport } from '../support/synthetic-snp.ts'
import {
  bundleOf,
  envelopeOf,
  makeWorld,
  manifest,
  signBundle,
} from '../support/synthetic-world.ts'

/** Mutated inputs per parser: so many cases of so many each. The long tests try a hundred thousand inputs. */
const CASES = Number(process.env['FUZZ_CASES'] ?? 100)
const INPUTS = 100

/** Generous on a busy machine; a hang is far beyond it. */
const TIMEOUT_MS = 120_000

/** Bytes that mean something to one of the parsers come up more often than chance would have it. */
const TELLING = [...utf8('{}[]",:.=-\n\\u0e'), 0x00, 0x02, 0x04, 0x30, 0x80, 0x84, 0xff]

type Random = (below: number) => number

/** Mulberry32: small, fast, and the same for the same seed. */
function seeded(seed: number): Random {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

/** One to three places where up to four bytes are put in and a few, or very many, taken out. */
function mutate(input: Bytes, random: Random): Bytes {
  let bytes = input
  for (let change = random(3); change >= 0; change--) {
    const start = random(bytes.length + 1)
    const removed = random(8) === 0 ? random(4000) : random(5)
    const inserted = Array.from({ length: random(5) }, () =>
      random(2) === 0 ? random(256) : (TELLING[random(TELLING.length)] ?? 0),
    )
    const tail = bytes.subarray(Math.min(start + removed, bytes.length))
    bytes = concatBytes(bytes.subarray(0, start), Uint8Array.from(inserted), tail)
  }
  return bytes
}

/** Feeds a parser mutated inputs; anything but an answer or `MalformedEvidence` fails, and names its seed. */
function expectCalm(parser: (input: Bytes) => unknown, seeds: readonly Bytes[]): void {
  let refused = 0
  const calm = property(integer(), (seed) => {
    const random = seeded(seed)
    for (let input = 0; input < INPUTS; input++) {
      refused += refuses(parser, mutate(seeds[random(seeds.length)] ?? utf8(''), random)) ? 1 : 0
    }
  })
  assert(calm, { numRuns: CASES })
  expect(refused).toBeGreaterThan((CASES * INPUTS) / 100)
}

function refuses(parser: (input: Bytes) => unknown, input: Bytes): boolean {
  try {
    parser(input)
    return false
  } catch (error) {
    if (error instanceof MalformedEvidence) return true
    throw error
  }
}

/** What is measured after it is what is held, and not what waits to be thrown away. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc()')
}

const textOf = (bytes: Bytes) => new TextDecoder('latin1').decode(bytes)

describe('parsers stay calm over mutated inputs', () => {
  let report: Bytes
  let certificates: readonly Bytes[]
  let pem: Bytes
  let crl: Bytes
  let jws: readonly Bytes[]
  let documents: Record<'bundle' | 'manifest' | 'envelope' | 'claims', Bytes>

  beforeAll(async () => {
    const world = await makeWorld()
    const turin = await syntheticChain({ product: 'turin' })
    report = await syntheticReport(turin)
    certificates = [...readPem(turin.pem), ...readPem(world.chain.pem)].map(({ der }) => der)
    pem = utf8(
      certificates
        .slice(0, 2)
        .map((der) => derToPem(der.slice(0, 300)))
        .join(''),
    )
    crl = await revocationList([1, 2, 0x10001])
    const receipt = await receiptOf(world, { byReference: true })
    jws = [await signBundle(world), world.manifestJws].map((text) => utf8(text))
    documents = {
      bundle: utf8(JSON.stringify(bundleOf(world))),
      manifest: utf8(JSON.stringify(manifest())),
      envelope: utf8(JSON.stringify(await envelopeOf(world))),
      claims: parseCompactJws(receipt, 'receipt').payload,
    }
  }, TIMEOUT_MS)

  test('SNP report', { timeout: TIMEOUT_MS }, () => {
    expectCalm(readReport, [report, report.with(0, 2), report.with(0, 3)])
  })

  test('certificate, its extensions and its key', { timeout: TIMEOUT_MS }, () => {
    const leaf = certificates.filter((_, index) => index % 3 === 0)
    expectCalm((input) => {
      const certificate = readCertificate(input)
      readAuthority(certificate)
      keyKind(certificate.spki)
      readVekExtensions(certificate, 'genoa', 'vcek')
    }, leaf)
  })

  test('revocation list', { timeout: TIMEOUT_MS }, () => {
    expectCalm(readRevocationList, [crl])
  })

  test('PEM', { timeout: TIMEOUT_MS }, () => {
    expectCalm((input) => readPem(textOf(input)), [pem])
  })

  test('compact JWS', { timeout: TIMEOUT_MS }, () => {
    expectCalm((input) => parseCompactJws(textOf(input), 'JWS'), jws)
  })

  test('strict JSON', { timeout: TIMEOUT_MS }, () => {
    const nested = utf8('['.repeat(60) + '{"a":{"b":[1,"\\u0061"]},"c":"}"}' + ']'.repeat(60))
    expectCalm((input) => parseStrictJson(input, 'document'), [nested, documents.manifest])
  })

  test('trust bundle', { timeout: TIMEOUT_MS }, () => {
    expectCalm(
      (input) => readDocument(trustBundleSchema, parseStrictJson(input, 'bundle'), 'bundle'),
      [documents.bundle],
    )
  })

  test('workload manifest', { timeout: TIMEOUT_MS }, () => {
    expectCalm(
      (input) => readDocument(manifestSchema, parseStrictJson(input, 'manifest'), 'manifest'),
      [documents.manifest],
    )
  })

  test('attestation envelope', { timeout: TIMEOUT_MS }, () => {
    expectCalm((input) => readEnvelope(input), [shorten(documents.envelope)])
  })

  test('receipt claims', { timeout: TIMEOUT_MS }, () => {
    expectCalm(
      (input) => readDocument(receiptClaimsSchema, parseStrictJson(input, 'claims'), 'claims'),
      [shorten(documents.claims)],
    )
  })
})

/** The long opaque strings of a document, cut: what is inside them has parsers of its own. */
function shorten(document: Bytes): Bytes {
  return utf8(new TextDecoder().decode(document).replaceAll(/(?<="[^"]{40})[^"]{60,}(?=")/g, ''))
}

describe('inputs made to hurt', () => {
  test('deep nesting is refused, not a stack overflow', () => {
    for (const text of [
      '['.repeat(200_000),
      '{"a":'.repeat(200_000),
      '['.repeat(65) + ']'.repeat(65),
    ]) {
      expect(() => parseStrictJson(text, 'document')).toThrow(MalformedEvidence)
    }
  })

  test('lengths that claim gigabytes are refused at once', () => {
    for (const hex of ['3084ffffffff', '308400000001', '3080', '30830fffff', '1f8101', '30', '']) {
      expect(() => readCertificate(fromHex(hex))).toThrow(MalformedEvidence)
    }
  })

  test('memory does not grow with the number of refused inputs', () => {
    const input = utf8(`{"a":"${'x'.repeat(10_000)}"`)
    const heaps = Array.from({ length: 12 }, () => {
      for (let i = 0; i < 300; i++) refuses((bytes) => parseStrictJson(bytes, 'document'), input)
      collectGarbage()
      return process.memoryUsage().heapUsed
    })
    const grown = Math.min(...heaps.slice(8)) - Math.min(...heaps.slice(2, 6))
    expect(grown).toBeLessThan(4 * 1024 * 1024)
  })
})
