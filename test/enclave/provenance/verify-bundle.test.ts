import { beforeAll, describe, expect, it } from 'vitest'
import {
  createProvenanceVerifier,
  verifySigstoreBundle,
} from '../../../src/enclave/provenance/verify-bundle.ts'
import type { VerifyProvenance } from '../../../src/verify/providers/provenance.ts'
import { realText } from '../../support/real-evidence.ts'
import {
  BUILDER,
  COMMIT,
  makeSyntheticSigstore,
  SUBJECT,
  type RecordChange,
  type SigstoreBundle,
  type SyntheticSigstore,
} from '../../support/synthetic-sigstore.ts'

let sigstore: SyntheticSigstore
let verify: VerifyProvenance

beforeAll(async () => {
  sigstore = await makeSyntheticSigstore()
  verify = createProvenanceVerifier(sigstore.trustedRoot)
})

const judge = (bundle: unknown, identity: object = {}, now = Date.now()) =>
  verify(JSON.stringify(bundle), { ...BUILDER, ...identity }, now)

const refusal = (check: string) =>
  `the public record of the release's build does not hold (${check})`

type Json = Record<string, unknown>
const object = (value: unknown): Json => ({ ...Object(value) })

/** The bundle with its only log entry changed. */
const withEntry =
  (change: (entry: Json) => Json) =>
  (bundle: SigstoreBundle): unknown => {
    const { tlogEntries, ...material } = bundle.verificationMaterial
    const [entry] = [tlogEntries].flat()
    return {
      ...bundle,
      verificationMaterial: { ...material, tlogEntries: [change(object(entry))] },
    }
  }

describe('a build record', () => {
  it('says which release it is of, and what was built', async () => {
    const bundle = await sigstore.record({ predicateType: 'kind', predicate: { a: 1 } })
    expect(judge(bundle)).toEqual({
      predicateType: 'kind',
      predicate: { a: 1 },
      subjectSha256: SUBJECT,
      release: {
        repository: BUILDER.repository,
        tag: 'v1.2.3',
        commit: COMMIT,
        logged_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        log_index: expect.stringMatching(/^\d+$/),
      },
    })
  })

  it.each<[string, RecordChange, string]>([
    ['of another repository', { repository: 'mallory/enclave' }, 'record_identity'],
    ['of a repository that starts alike', { repository: 'vega/enclave-too' }, 'record_identity'],
    ['of another workflow', { workflow: '.github/workflows/test.yml' }, 'record_identity'],
    ['under another issuer', { issuer: 'https://issuer.example' }, 'record_identity'],
    ['of a branch', { claims: { 14: 'refs/heads/main' } }, 'record_identity'],
    ['of another source', { claims: { 12: 'https://github.com/mallory/fork' } }, 'record_identity'],
    ['built on a machine of its own', { claims: { 11: 'self-hosted' } }, 'record_identity'],
    ['of a tag that is none', { tag: 'v1 or so' }, 'record_identity'],
    ['logged after its certificate ended', { loggedAfter: 660_000 }, 'record_expired'],
    ['logged before its certificate began', { loggedAfter: -60_000 }, 'record_expired'],
    ['that is no in-toto statement', { payloadType: 'text/plain' }, 'record_form'],
    ['of several artefacts', { statement: { subject: [{}, {}] } }, 'record_form'],
    ['of an older kind of statement', { statement: { _type: 'about:blank' } }, 'record_form'],
  ])('%s is refused by name', async (_what, change, check) => {
    const bundle = await sigstore.record(change)
    expect(() => judge(bundle, {}, Date.now() + 3_600_000)).toThrow(refusal(check))
  })

  it.each<[string, (bundle: SigstoreBundle) => unknown, string]>([
    [
      'in no log',
      (bundle) => ({
        ...bundle,
        verificationMaterial: { ...bundle.verificationMaterial, tlogEntries: [] },
      }),
      'record_log',
    ],
    [
      'without a proof of inclusion',
      withEntry((entry) => ({ ...entry, inclusionProof: undefined })),
      'record_log',
    ],
    [
      'with a promise of the log and no time that it signed',
      withEntry((entry) => ({ ...entry, inclusionPromise: undefined })),
      'record_time',
    ],
    [
      'whose log entry says another time',
      withEntry((entry) => ({
        ...entry,
        integratedTime: String(Number(entry['integratedTime']) + 1),
      })),
      'record_log',
    ],
    [
      'whose proof leads to another tree',
      withEntry((entry) => ({
        ...entry,
        inclusionProof: {
          ...object(entry['inclusionProof']),
          hashes: [Buffer.alloc(32, 1).toString('base64')],
        },
      })),
      'record_log',
    ],
    [
      'with another payload under the same signature',
      ({ dsseEnvelope, ...bundle }) => ({
        ...bundle,
        dsseEnvelope: {
          ...dsseEnvelope,
          payload: Buffer.from(
            Buffer.from(dsseEnvelope.payload, 'base64')
              .toString()
              .replace(SUBJECT, 'ab'.repeat(32)),
          ).toString('base64'),
        },
      }),
      'record_log',
    ],
    ['without a certificate', (bundle) => ({ ...bundle, verificationMaterial: {} }), 'record_form'],
    ['that is none', () => ({ mediaType: 'x' }), 'record_form'],
  ])('%s is refused by name', async (_what, change, check) => {
    const bundle = change(await sigstore.record())
    expect(() => judge(bundle)).toThrow(refusal(check))
  })

  it('with the log entry of another record is refused by name', async () => {
    const [bundle, other] = [
      await sigstore.record(),
      await sigstore.record({ subject: 'ab'.repeat(32) }),
    ]
    const { tlogEntries } = other.verificationMaterial
    const mixed = {
      ...bundle,
      verificationMaterial: { ...bundle.verificationMaterial, tlogEntries },
    }
    expect(() => judge(mixed)).toThrow(refusal('record_log'))
  })

  it('with the certificate of another record is refused by name', async () => {
    const [bundle, other] = [await sigstore.record(), await sigstore.record({ repository: 'a/b' })]
    const { certificate } = bundle.verificationMaterial
    const mixed = { ...other, verificationMaterial: { ...other.verificationMaterial, certificate } }
    expect(() => judge(mixed)).toThrow(refusal('record_signature'))
  })

  it('of another Sigstore instance is refused by name', async () => {
    const other = await makeSyntheticSigstore()
    const bundle = await other.record()
    expect(() => judge(bundle)).toThrow(/\(record_(log|certificate)\)$/)
    expect(() => verifySigstoreBundle(JSON.stringify(bundle), BUILDER, Date.now())).toThrow(
      /\(record_(log|certificate)\)$/,
    )
  })

  it.each(['certificateAuthorities', 'ctlogs'])(
    'whose certificate is not by the %s that are pinned is refused by name',
    async (member) => {
      const other = await makeSyntheticSigstore()
      const root = { ...sigstore.trustedRoot, [member]: other.trustedRoot[member] }
      const bundle = JSON.stringify(await sigstore.record())
      expect(() => createProvenanceVerifier(root)(bundle, BUILDER, Date.now())).toThrow(
        refusal('record_certificate'),
      )
    },
  )

  it('from the future, or older than the operator takes, is refused by name', async () => {
    const bundle = await sigstore.record()
    expect(() => judge(bundle, {}, Date.now() - 86_400_000)).toThrow(refusal('record_time'))
    const since = new Date(Date.now() + 60_000).toISOString()
    expect(() => judge(bundle, { not_before: since })).toThrow(refusal('record_too_old'))
  })

  it('of text that is no JSON, or is endless, is refused', () => {
    expect(() => verify('{', BUILDER, Date.now())).toThrow(refusal('record_form'))
    expect(() => verify(' '.repeat(1_048_577), BUILDER, Date.now())).toThrow(
      'a document is larger than any honest one',
    )
  })
})

/** Every signature of it holds under the pinned root: all that is wrong with it is who signed it. */
describe('a record of the public Sigstore instance', () => {
  const recorded = realText('sigstore/dsse-in-toto.sigstore.json')

  it('holds under the pinned root, and is refused for its identity alone', () => {
    expect(() => verifySigstoreBundle(recorded, BUILDER, Date.now())).toThrow(
      refusal('record_identity'),
    )
  })

  it('no longer holds once a byte of its log entry differs', () => {
    const bundle = object(JSON.parse(recorded))
    const material = object(bundle['verificationMaterial'])
    const [entry] = [material['tlogEntries']].flat()
    const body = Buffer.from(String(object(entry)['canonicalizedBody']), 'base64')
    body[20] = (body[20] ?? 0) ^ 1
    const tlogEntries = [{ ...object(entry), canonicalizedBody: body.toString('base64') }]
    const changed = { ...bundle, verificationMaterial: { ...material, tlogEntries } }
    expect(() => verifySigstoreBundle(JSON.stringify(changed), BUILDER, Date.now())).toThrow(
      refusal('record_log'),
    )
  })
})
