import { fromBase64, toBase64 } from '../../src/protocol/bytes.ts'
import type { Envelope } from '../../src/protocol/envelope.ts'
import { REPORT_LAYOUT, type ReportField } from '../../src/verify/snp/report-layout.ts'
import type { FakeRouter, Misdeeds } from './fake-router.ts'
import { revocationList } from './synthetic-snp.ts'

/** One changed byte in one part of a proof, and what a client must call it. */
export interface Tampering {
  readonly name: string
  /** A failed check, or the document that cannot be read. */
  readonly failed: string
  readonly misdeeds: (host: FakeRouter) => Misdeeds | Promise<Misdeeds>
}

/** Fields of the report, all signed by the chip; the signature's own two numbers beside them. */
const REPORT_FIELDS = Object.keys(REPORT_LAYOUT).filter(isField)

function isField(name: string): name is ReportField {
  return name in REPORT_LAYOUT
}

/** Where another check speaks before the signature can. */
const EARLIER: Partial<Record<ReportField, string>> = {
  signatureAlgorithm: 'SNP report',
}

export function flipByte(base64: string, offset: number): string {
  const bytes = fromBase64(base64)
  bytes[offset] = (bytes[offset] ?? 0) ^ 1
  return toBase64(bytes)
}

/** Another digit of the same alphabet, so that the form stays right. */
export function otherDigit(text: string, at: number): string {
  const [first, second] = /[0-9]/.test(text[at] ?? '')
    ? ['1', '2']
    : /[a-z]/.test(text[at] ?? '')
      ? ['a', 'b']
      : ['A', 'B']
  return text.slice(0, at) + (text[at] === first ? second : first) + text.slice(at + 1)
}

/** Changes the envelope as it is sent, after the report was made. */
function inEnvelope(change: (envelope: Envelope) => Partial<Envelope>): Misdeeds {
  return {
    envelopeText: (honest) => {
      const envelope: Envelope = JSON.parse(honest)
      return JSON.stringify({ ...envelope, ...change(envelope) })
    },
  }
}

const reportTamperings: readonly Tampering[] = REPORT_FIELDS.map((field) => ({
  name: `the report: ${field}`,
  failed: EARLIER[field] ?? 'report_signature',
  misdeeds: () =>
    inEnvelope(({ snp_report_b64: report }) => ({
      snp_report_b64: flipByte(report, REPORT_LAYOUT[field][0]),
    })),
}))

/** A byte within the signature of the certificate at a position of the chain, near the end of its PEM. */
function inCertificate(index: number): Misdeeds {
  return inEnvelope(({ vcek_chain_pem: pem }) => {
    const end = pem
      .split('-----END')
      .slice(0, index + 1)
      .join('-----END').length
    return { vcek_chain_pem: otherDigit(pem, end - 80) }
  })
}

const bundlePart = (index: number): Misdeeds => ({
  bundleJws: (jws) => {
    const start = jws.split('.').slice(0, index).join('.').length
    return otherDigit(jws, start + 10)
  },
})

export const TAMPERINGS: readonly Tampering[] = [
  ...reportTamperings,
  {
    name: 'the chain: chip certificate',
    failed: 'vek_signature',
    misdeeds: () => inCertificate(0),
  },
  { name: 'the chain: authority', failed: 'ask_signature', misdeeds: () => inCertificate(1) },
  { name: 'the chain: root', failed: 'ark_signature', misdeeds: () => inCertificate(2) },
  { name: 'the bundle: header', failed: 'trust bundle', misdeeds: () => bundlePart(0) },
  { name: 'the bundle: content', failed: 'trust_bundle_signature', misdeeds: () => bundlePart(1) },
  {
    name: 'the bundle: signature',
    failed: 'trust_bundle_signature',
    misdeeds: () => bundlePart(2),
  },
  {
    name: 'the manifest',
    failed: 'workload_identity_tag',
    misdeeds: () =>
      inEnvelope(({ workload_identity_manifest_jws: jws }) => ({
        workload_identity_manifest_jws: otherDigit(jws, jws.length - 20),
      })),
  },
  {
    name: 'the identity tag',
    failed: 'report_data',
    misdeeds: () =>
      inEnvelope(({ workload_identity_tag: tag }) => ({
        workload_identity_tag: otherDigit(tag, 5),
      })),
  },
  {
    name: 'the TLS key: the one in the envelope, after the report',
    failed: 'report_data',
    misdeeds: () =>
      inEnvelope(({ tls_spki_sha256: key }) => ({ tls_spki_sha256: otherDigit(key, 5) })),
  },
  {
    name: 'the TLS key: the one on the connection',
    failed: 'tls_key',
    misdeeds: ({ spki }) => ({ envelopeSpki: otherDigit(spki, 5) }),
  },
  {
    name: 'the receipt key',
    failed: 'report_data_binding',
    misdeeds: () =>
      inEnvelope(({ report_data_binding: binding }) => ({
        report_data_binding: binding && {
          ...binding,
          receipt_key_thumbprint: otherDigit(binding.receipt_key_thumbprint, 5),
        },
      })),
  },
  {
    name: 'the nonce: an answer to another question',
    failed: 'nonce',
    misdeeds: () => ({ nonce: 'f'.repeat(64) }),
  },
  {
    name: 'the nonce: the right one, after the report',
    failed: 'report_data_binding',
    misdeeds: () => ({
      nonce: 'f'.repeat(64),
      ...inEnvelope(({ report_data_binding: binding }) => ({
        report_data_binding: binding && { ...binding, nonce: '1'.padStart(64, '0') },
      })),
    }),
  },
  {
    name: 'the revocation list',
    failed: 'revocation',
    misdeeds: async () => {
      const list = await revocationList([])
      list[list.length - 10] = (list[list.length - 10] ?? 0) ^ 1
      return {
        envelope: (honest) => ({ claimed: { ...honest.claimed, snp_crl_b64: toBase64(list) } }),
      }
    },
  },
  {
    name: 'the text of the envelope',
    failed: 'attestation envelope',
    misdeeds: () => ({ envelopeText: (honest) => `[${honest.slice(1)}` }),
  },
]

/** What only concerns clients that encrypt to the HPKE key. */
export const HPKE_TAMPERINGS: readonly Tampering[] = [
  {
    name: 'the HPKE key: the one that is served',
    failed: 'hpke_key',
    misdeeds: () => ({
      hpkeKeys: (honest) => honest.map((byte, at) => (at === 20 ? byte ^ 1 : byte)),
    }),
  },
  {
    name: 'the HPKE key: its algorithms',
    failed: 'HPKE key configuration',
    misdeeds: () => ({
      hpkeKeys: (honest) => honest.map((byte, at) => (at === 40 ? byte ^ 1 : byte)),
    }),
  },
  {
    name: 'the HPKE key: the one in the envelope, after the report',
    failed: 'report_data_binding',
    misdeeds: () =>
      inEnvelope(({ report_data_binding: binding }) => ({
        report_data_binding:
          binding?.label === 'cmr/report-data/v2'
            ? {
                ...binding,
                hpke_key_config_sha256: otherDigit(binding.hpke_key_config_sha256, 5),
              }
            : undefined,
      })),
  },
  {
    name: 'the HPKE key: none in the report',
    failed: 'hpke_key',
    misdeeds: () => ({ envelopeHpke: '' }),
  },
]

/** A character in one line of a proof that an entry is in the log. */
const inLogProof = (name: 'manifest' | 'trust_bundle', line: number, at: number): Misdeeds => ({
  logProofs: (honest) => {
    const lines = (honest[name] ?? '').split('\n')
    lines[line] = otherDigit(lines[line] ?? '', at)
    return { ...honest, [name]: lines.join('\n') }
  },
})

/** What concerns those alone who demand that a release is in a public log (`LOG_POLICY`). */
export const LOG_TAMPERINGS: readonly Tampering[] = [
  {
    name: 'the log: no proofs',
    failed: 'trust_bundle_logged',
    misdeeds: () => ({ logProofs: () => undefined }),
  },
  {
    name: 'the log: proofs of each other',
    failed: 'manifest_logged',
    misdeeds: () => ({
      logProofs: ({ manifest, trust_bundle }) => ({
        manifest: trust_bundle,
        trust_bundle: manifest,
      }),
    }),
  },
  {
    name: 'the log: place of the manifest',
    failed: 'manifest_logged',
    misdeeds: () => inLogProof('manifest', 1, 6),
  },
  {
    name: 'the log: way to its root',
    failed: 'trust_bundle_logged',
    misdeeds: () => inLogProof('trust_bundle', 2, 10),
  },
  {
    name: 'the log: its root',
    failed: 'trust_bundle_logged',
    misdeeds: () => inLogProof('trust_bundle', 6, 10),
  },
  {
    name: 'the log: its signature',
    failed: 'trust_bundle_logged',
    misdeeds: () => inLogProof('trust_bundle', 8, 60),
  },
  {
    name: 'the log: the signature of its witness',
    failed: 'manifest_logged',
    misdeeds: () => inLogProof('manifest', 9, 60),
  },
]
