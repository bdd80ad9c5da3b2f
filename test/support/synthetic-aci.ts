import { canonicalJson } from '../../src/protocol/canonical-json.ts'
import { concatBytes, toHex, utf8, type Bytes } from '../../src/protocol/bytes.ts'
import { APP_COMPOSE, bootEvents, eventLog, type RuntimeEvent } from './synthetic-dstack.ts'
import { sha256Of, type SyntheticIntel } from './synthetic-intel.ts'
import { makeQuote, register, type GuestFields } from './synthetic-tdx.ts'

export interface AciKeysetJson {
  readonly [member: string]: string | number | null | readonly Record<string, string>[]
}

/** What a private gateway says of itself; tests change one thing at a time. */
export interface AciWorkload {
  readonly nonce: string
  readonly keyset: AciKeysetJson
  readonly appCompose: string
  readonly events: readonly RuntimeEvent[]
  readonly guest: GuestFields
  /** Canonical JSON of the keyset that the quote is for, where it is another one. */
  readonly bound?: string
}

export function aciKeyset(tlsSpkiSha256: string, domain?: string): AciKeysetJson {
  return {
    subject: null,
    not_after: 2_000_000_000,
    receipt_signing_keys: [{ key_id: 'receipt-1', algo: 'ed25519', public_key: '81'.repeat(32) }],
    e2ee_public_keys: [],
    tls_public_keys: [{ spki_sha256: tlsSpkiSha256, ...(domain === undefined ? {} : { domain }) }],
  }
}

/** The keyset of the published vectors (Dstack-TEE/private-ai-gateway, `spec/test-vectors.md`). */
export const VECTOR_KEYSET: AciKeysetJson = {
  e2ee_public_keys: [
    {
      algo: 'x25519-aes-256-gcm-hkdf-sha256',
      key_id: 'e2ee-1',
      public_key: '5dfedd3b6bd47f6fa28ee15d969d5bb0ea53774d488bdaf9df1c6e0124b3ef22',
    },
  ],
  not_after: 1_800_000_000,
  receipt_signing_keys: [
    {
      algo: 'ed25519',
      key_id: 'receipt-1',
      public_key: '8139770ea87d175f56a35466c34c7ecccb8d8a91b4ee37a25df60f5b8fc9b394',
    },
  ],
  subject: 'dstack-app://example-app',
  tls_public_keys: [{ domain: 'api.example.com', spki_sha256: 'c0'.repeat(32) }],
}

/** The answer to `/v1/aci/attestation`, with a quote of the synthetic platform, of an honest gateway but for `change`. */
export async function aciReport(
  intel: SyntheticIntel,
  change: Pick<AciWorkload, 'nonce' | 'keyset'> & Partial<AciWorkload>,
): Promise<object> {
  const workload: AciWorkload = {
    appCompose: APP_COMPOSE,
    events: bootEvents(),
    guest: {},
    ...change,
  }
  const stated = bind(canonicalJson(workload.keyset), workload.nonce)
  const measured = bind(workload.bound ?? canonicalJson(workload.keyset), workload.nonce)
  const { events, rtMr3 } = eventLog(workload.events)
  const quote = await makeQuote(intel, {
    mrTd: register(0x11),
    rtMr: [register(0x12), register(0x13), register(0x14), rtMr3],
    reportData: concatBytes(measured.reportData, new Uint8Array(32)),
    ...workload.guest,
  })
  return {
    api_version: 'aci/1',
    workload_keyset_digest: stated.digest,
    attestation: {
      tee_type: 'tdx',
      workload_keyset: workload.keyset,
      report_data: toHex(stated.reportData),
      source_provenance: { repo_url: null, repo_commit: null, image_digest: null },
      evidence: {
        quote: toHex(quote),
        event_log: JSON.stringify(events),
        app_compose: workload.appCompose,
        vm_config: null,
      },
    },
    service_capabilities: { supported_e2ee_versions: [], serving: 'aggregator' },
  }
}

function bind(keyset: string, nonce: string): { digest: string; reportData: Bytes } {
  const digest = `sha256:${toHex(sha256Of(utf8(keyset)))}`
  const statement = `{"keyset_digest":"${digest}","nonce":"${nonce}","purpose":"aci.report_data.v1"}`
  return { digest, reportData: sha256Of(utf8(statement)) }
}
