import * as z from 'zod'
import { fromHex, type Bytes } from '../../../protocol/bytes.ts'
import { MalformedEvidence } from '../../../protocol/malformed-evidence.ts'
import { readDocument } from '../../../protocol/read-document.ts'
import { parseStrictJson } from '../../../protocol/strict-json.ts'
import { readSnpAttestation } from './attestation.ts'
import { readVmConfig, type VmConfig } from './vm-config.ts'
import { MESSAGE_ALGORITHMS, type MessageKey } from '../judged-evidence.ts'

const NAME = 'dstack report'

const hexText = z
  .string()
  .transform((text) => text.toLowerCase().replace(/^0x/, ''))
  .refine((text) => text.length % 2 === 0 && /^[0-9a-f]*$/.test(text), 'not hex')

const eventSchema = z.looseObject({
  imr: z.int(),
  event_type: z.int().min(0).max(0xffff_ffff),
  /** Since dstack 0.5.6 empty for the guest's own events, whose digest can be computed. */
  digest: hexText.default(''),
  event: z.string(),
  event_payload: hexText,
  /** How the digest is computed; absent in older logs. */
  version: z.union([z.literal(1), z.literal(2)]).default(1),
  /** The pre-image of the digest, in version 2. */
  preimage: hexText.nullish(),
})

const tcbInfoSchema = z.looseObject({ app_compose: z.string() })

const attestationSchema = z.looseObject({
  signing_address: hexText,
  signing_algo: z.enum(MESSAGE_ALGORITHMS).default('ecdsa'),
  intel_quote: hexText.nullish(),
  /** Replaces quote and log on platforms other than TDX. */
  attestation: hexText.nullish(),
  /** A string with JSON. Any other value is an error, never treated as absent. */
  nvidia_payload: z.string().nullish(),
  tls_cert_fingerprint: hexText.nullish(),
  event_log: z.unknown().optional(),
  info: z.looseObject({ tcb_info: z.unknown(), vm_config: z.unknown().optional() }),
  vm_config: z.unknown().optional(),
})

const fleetSchema = z.looseObject({
  gateway_attestation: z.unknown().optional(),
  all_attestations: z.array(z.unknown()).max(64).nullish(),
  model_attestations: z.array(z.unknown()).max(64).nullish(),
})

export interface DstackEvent {
  readonly imr: number
  readonly type: number
  readonly version: 1 | 2
  /**
   * Lowercase hex; empty where the log omits it because it can be computed. `preimage` may be undefined for the same
   * reason.
   */
  readonly digest: string
  readonly preimage: string | undefined
  readonly name: string
  readonly payload: Bytes
}

/** The hardware's evidence of a node, and how the machine was started. */
export type DstackMachine = { readonly vmConfig: VmConfig } & (
  | { readonly tee: 'tdx'; readonly quote: Bytes; readonly eventLog: readonly DstackEvent[] }
  | { readonly tee: 'sev-snp'; readonly report: Bytes; readonly mrConfig: string }
)

/** One node's attestation, unverified. */
export interface DstackReport {
  readonly signer: MessageKey
  /** SHA-256 of the node's TLS key as the report claims it; REPORT_DATA is authoritative. Lowercase hex. */
  readonly tlsSpkiSha256: string | undefined
  readonly machine: DstackMachine
  readonly appCompose: string
  readonly nvidiaPayload: string | undefined
}

/**
 * Reads the attestations in an answer to `/attestation/report`: only the gateway's own where there is one, because
 * connections end there; else the node's, and those of its fleet.
 * @throws MalformedEvidence when the report or a JSON text in it cannot be parsed
 */
export function readDstackReports(body: Bytes): readonly DstackReport[] {
  const json = parseStrictJson(body, NAME)
  const { gateway_attestation: gateway, all_attestations: fleet } = readDocument(
    fleetSchema,
    json,
    NAME,
  )
  if (gateway !== undefined && gateway !== null) return [readReport(gateway)]
  return [json, ...(fleet ?? [])].map(readReport)
}

/**
 * The attestations of the nodes behind the requested model of a gateway.
 * @throws MalformedEvidence when the input is malformed
 */
export function readModelReports(body: Bytes): readonly DstackReport[] {
  const { model_attestations: nodes } = readDocument(fleetSchema, parseStrictJson(body, NAME), NAME)
  return (nodes ?? []).map(readReport)
}

function readReport(json: unknown): DstackReport {
  const node = readDocument(attestationSchema, json, NAME)
  return {
    signer: { algorithm: node.signing_algo, address: node.signing_address },
    tlsSpkiSha256: /^[0-9a-f]{64}$/.exec(node.tls_cert_fingerprint ?? '')?.[0],
    machine: readMachine(node),
    appCompose: readDocument(tcbInfoSchema, unwrap(node.info.tcb_info), NAME).app_compose,
    nvidiaPayload: node.nvidia_payload ?? undefined,
  }
}

function readMachine(node: z.output<typeof attestationSchema>): DstackMachine {
  const { intel_quote: quote, attestation } = node
  if (quote) {
    return {
      tee: 'tdx',
      quote: fromHex(quote),
      eventLog: readDstackEvents(node.event_log),
      vmConfig: readVmConfig(node.vm_config ?? node.info.vm_config),
    }
  }
  if (!attestation) throw new MalformedEvidence(NAME, 'neither a quote nor an attestation')
  const { report, mrConfig, config } = readSnpAttestation(fromHex(attestation))
  return { tee: 'sev-snp', report, mrConfig, vmConfig: readVmConfig(config) }
}

/**
 * The events of a log, as JSON or as JSON in a string.
 * @throws MalformedEvidence when the log cannot be read
 */
export function readDstackEvents(log: unknown): DstackEvent[] {
  const events = readDocument(z.array(eventSchema).max(4096), unwrap(log), 'dstack event log')
  return events.map(({ event_type: type, event: name, event_payload: payload, ...event }) => ({
    imr: event.imr,
    type,
    version: event.version,
    digest: event.digest,
    preimage: event.preimage ?? undefined,
    name,
    payload: fromHex(payload),
  }))
}

/** Parses a member that is JSON, or JSON in a string, depending on the software's version. */
function unwrap(value: unknown): unknown {
  if (typeof value !== 'string') return value
  if (value === '') throw new MalformedEvidence(NAME, 'an empty member')
  return parseStrictJson(value, NAME)
}
