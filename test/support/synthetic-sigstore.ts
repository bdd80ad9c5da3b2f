import { createHash, generateKeyPairSync, sign, type KeyPairKeyObjectResult } from 'node:crypto'
import { initializeCA, initializeCTLog, initializeTLog } from '@sigstore/mock'

/** A Sigstore instance of its own: certificate authority, certificate log, transparency log. */
export interface SyntheticSigstore {
  /** `trusted_root.json`. */
  readonly trustedRoot: Readonly<Record<string, unknown>>
  readonly record: (change?: RecordChange) => Promise<SigstoreBundle>
}

/** Who signs what, in the form of GitHub Actions, with the parts that a liar might change. */
export interface RecordChange {
  readonly repository?: string
  readonly workflow?: string
  readonly tag?: string
  readonly issuer?: string
  readonly claims?: Readonly<Record<number, string>>
  readonly subject?: string
  readonly predicateType?: string
  readonly predicate?: unknown
  readonly statement?: Readonly<Record<string, unknown>>
  readonly payloadType?: string
  /** How long after the certificate the log takes the entry in, in milliseconds. */
  readonly loggedAfter?: number
}

export type SigstoreBundle = {
  readonly mediaType: string
  readonly verificationMaterial: Record<string, unknown>
  readonly dsseEnvelope: {
    readonly payload: string
    readonly payloadType: string
    readonly signatures: { readonly sig: string }[]
  }
}

export const BUILDER = {
  repository: 'vega/enclave',
  workflow: '.github/workflows/release.yml',
  issuer: 'https://token.actions.githubusercontent.com',
} as const

export const COMMIT = 'c0'.repeat(20)
export const SUBJECT = '5e'.repeat(32)

const newKey = (): KeyPairKeyObjectResult => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const base64 = (bytes: ArrayBufferView | Uint8Array) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest()

export async function makeSyntheticSigstore(): Promise<SyntheticSigstore> {
  const [caKey, ctKey, logKey] = [newKey(), newKey(), newKey()]
  const ctLog = await initializeCTLog(ctKey)
  const ca = await initializeCA(caKey, ctLog)
  const now = Date.now()
  const logAt = (at: number) => initializeTLog('https://log.example', logKey, new Date(at))
  const { publicKey: logSpki } = await logAt(now)
  return {
    trustedRoot: {
      mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
      tlogs: [logEntry('https://log.example', logSpki)],
      ctlogs: [logEntry('https://ct.example', ctLog.publicKey)],
      timestampAuthorities: [],
      certificateAuthorities: [
        {
          subject: { organization: 'sigstore.mock', commonName: 'sigstore' },
          uri: 'https://ca.example',
          certChain: { certificates: [{ rawBytes: base64(ca.rootCertificate) }] },
          validFor: { start: new Date(now - 3_600_000).toISOString() },
        },
      ],
    },
    async record(change = {}) {
      const key = newKey()
      const spki = key.publicKey.export({ type: 'spki', format: 'der' })
      const certificate = base64(
        await ca.issueCertificate({ publicKey: spki, ...certificateOf(change) }),
      )
      const dsseEnvelope = envelopeOf(change, key)
      const entry = await logEnvelope(
        await logAt(Date.now() + (change.loggedAfter ?? 0)),
        dsseEnvelope,
        certificate,
      )
      return {
        mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
        verificationMaterial: { certificate: { rawBytes: certificate }, tlogEntries: [entry] },
        dsseEnvelope,
      }
    },
  }
}

function logEntry(baseUrl: string, spki: Buffer) {
  return {
    baseUrl,
    hashAlgorithm: 'SHA2_256',
    publicKey: {
      rawBytes: base64(spki),
      keyDetails: 'PKIX_ECDSA_P256_SHA_256',
      validFor: { start: '2020-01-01T00:00:00Z' },
    },
    logId: { keyId: base64(sha256(spki)) },
  }
}

function certificateOf(change: RecordChange) {
  const { repository, workflow, issuer, tag } = { ...BUILDER, tag: 'v1.2.3', ...change }
  const source = `https://github.com/${repository}`
  const claims = {
    8: issuer,
    11: 'github-hosted',
    12: source,
    13: COMMIT,
    14: `refs/tags/${tag}`,
    ...change.claims,
  }
  return {
    subjectAltName: `${source}/${workflow}@refs/tags/${tag}`,
    extensions: Object.entries(claims).map(([arc, value]) => ({
      oid: `1.3.6.1.4.1.57264.1.${arc}`,
      value,
    })),
  }
}

function envelopeOf(
  {
    subject = SUBJECT,
    predicateType = 'about:blank',
    predicate = {},
    statement,
    payloadType = 'application/vnd.in-toto+json',
  }: RecordChange,
  { privateKey }: KeyPairKeyObjectResult,
): SigstoreBundle['dsseEnvelope'] {
  const text = JSON.stringify({
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: 'deployment.json', digest: { sha256: subject } }],
    predicateType,
    predicate,
    ...statement,
  })
  const signed = `DSSEv1 ${payloadType.length} ${payloadType} ${Buffer.byteLength(text)} ${text}`
  const sig = sign('sha256', Buffer.from(signed), privateKey).toString('base64')
  return { payload: Buffer.from(text).toString('base64'), payloadType, signatures: [{ sig }] }
}

interface LogEntry {
  readonly body: string
  readonly integratedTime: number
  readonly logID: string
  readonly logIndex: number
  readonly verification: {
    readonly signedEntryTimestamp: string
    readonly inclusionProof: {
      readonly logIndex: number
      readonly rootHash: string
      readonly treeSize: number
      readonly checkpoint: string
    }
  }
}

/** As Rekor takes in an envelope (kind dsse 0.0.1), and in the form that bundles have. */
async function logEnvelope(
  log: Awaited<ReturnType<typeof initializeTLog>>,
  { payload, signatures }: SigstoreBundle['dsseEnvelope'],
  certificate: string,
) {
  const pem = `-----BEGIN CERTIFICATE-----\n${certificate}\n-----END CERTIFICATE-----\n`
  const digest = {
    algorithm: 'sha256',
    value: sha256(Buffer.from(payload, 'base64')).toString('hex'),
  }
  const entries: Record<string, LogEntry> = await log.log({
    apiVersion: '0.0.1',
    kind: 'dsse',
    spec: {
      envelopeHash: digest,
      payloadHash: digest,
      signatures: signatures.map(({ sig }) => ({
        signature: sig,
        verifier: Buffer.from(pem).toString('base64'),
      })),
    },
  })
  const [entry] = Object.values(entries)
  const { inclusionProof, signedEntryTimestamp } = entry?.verification ?? {}
  return {
    logIndex: String(entry?.logIndex),
    logId: { keyId: Buffer.from(String(entry?.logID), 'hex').toString('base64') },
    kindVersion: { kind: 'dsse', version: '0.0.1' },
    integratedTime: String(entry?.integratedTime),
    inclusionPromise: { signedEntryTimestamp },
    inclusionProof: {
      logIndex: String(inclusionProof?.logIndex),
      rootHash: Buffer.from(String(inclusionProof?.rootHash), 'hex').toString('base64'),
      treeSize: String(inclusionProof?.treeSize),
      hashes: [],
      checkpoint: { envelope: inclusionProof?.checkpoint },
    },
    canonicalizedBody: entry?.body,
  }
}
